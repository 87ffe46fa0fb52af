import cluster from 'node:cluster'
import type { EntryPage } from 'express-model-gateway/config'
import type { Settings } from '../config/environment.ts'
import { type SentConfig, servedConfig } from '../config/served-config.ts'
import { exitWithErrors } from '../errors.ts'
import { type Serving, startServing } from '../serving/server.ts'
import { inProcess, openLimitStores } from '../stores/limit-stores.ts'
import type { ProcessLog } from '../telemetry/log.ts'
import type { FromWorker, RestOfConfig, ToWorker } from './messages.ts'
import { Peers } from './reports.ts'
import { SharedLimitStore } from './shared-limits.ts'

/** Runs a worker: serves the port, and follows the messages of the primary process. */
export async function runWorker(settings: Settings, logger: ProcessLog): Promise<void> {
  const shared = new SharedLimitStore(sendToPrimary, logger)
  let serving: Serving | undefined
  let begun: Promise<void> = Promise.resolve()
  let peers: Peers | undefined
  let accounts: EntryPage[] = []
  let keys: EntryPage[] = []

  /** Joins a config and its pages, which came before it. */
  const joined = (rest: RestOfConfig): SentConfig => {
    const config = { ...rest, accounts, keys }
    accounts = []
    keys = []
    return config
  }
  const start = async ({
    config: rest,
    port,
    adminPort,
    worker,
    logsForAll,
  }: Extract<ToWorker, { kind: 'start' }>): Promise<void> => {
    const config = servedConfig(joined(rest))
    const limits =
      settings.redisUrl === undefined
        ? inProcess(shared, shared)
        : await openLimitStores(settings.redisUrl, logger, config.onStoreError)
    peers = new Peers(sendToPrimary, { worker, logsForAll })
    const adminListener = settings.adminListener && {
      ...settings.adminListener,
      port: adminPort ?? settings.adminListener.port,
    }
    const ownSettings = { ...settings, port, adminListener }
    serving = await startServing({ settings: ownSettings, config, limits, logger, peers })
    sendToPrimary({ kind: 'ready', addresses: serving.addresses })
  }
  const end = (how: 'stop' | 'retire'): void => {
    if (!serving) process.exit(0)
    const ended = serving[how]().then(() => logger.close())
    ended.then(
      () => process.exit(0),
      (error: unknown) => {
        logger.error({ err: error }, 'stopping failed')
        process.exit(1)
      },
    )
  }

  process.on('message', (message: ToWorker) => {
    switch (message.kind) {
      case 'start':
        begun = start(message).catch(exitWithErrors)
        break
      case 'page': {
        const { of, last, json } = message
        const pages = of === 'accounts' ? accounts : keys
        pages.push({ last, json: new TextEncoder().encode(json) })
        break
      }
      case 'reload': {
        const config = joined(message.config)
        begun = begun
          .then(() => {
            if (peers) peers.logsForAll = message.logsForAll
            return serving?.reload(servedConfig(config))
          })
          .catch((error: unknown) =>
            logger.error({ err: error }, 'config not reloaded; the running config stays in effect'),
          )
        break
      }
      case 'verdicts':
        shared.answer(message.verdicts)
        break
      case 'report':
        peers?.report(message.round, message.about).catch((error: unknown) => {
          logger.error({ err: error }, 'the figures of this worker could not be reported')
        })
        break
      case 'reports':
        peers?.receive(message.ask, message.reports)
        break
      default:
        end(message.kind)
    }
  })
  // A terminal or a service manager sends these to all processes. The primary process decides what to do.
  for (const signal of ['SIGINT', 'SIGHUP', 'SIGUSR2'] as const) process.on(signal, () => {})
  process.on('SIGTERM', () => sendToPrimary({ kind: 'leaving' }))
  // Without this flag, Node would end the worker during its calls when the primary process ends. It drains first instead.
  if (cluster.worker) cluster.worker.exitedAfterDisconnect = true
  process.once('disconnect', () => end('stop'))
}

function sendToPrimary(message: FromWorker): void {
  // Without a channel the primary process has ended.
  if (process.connected) process.send?.(message, undefined, undefined, () => {})
}

import cluster from 'node:cluster'
import type { Logger } from 'express-model-gateway'
import { giveUp } from './give-up.ts'
import { Peers } from './peers.ts'
import { type Serving, startServing } from './serving.ts'
import { configOf, type Settings } from './settings.ts'
import { SharedLimitStore } from './shared-limits.ts'
import { openLimitStores } from './stores.ts'
import type { FromWorker, ToWorker } from './worker-messages.ts'

/** Serves as one of several, and does what the primary process says. */
export async function work(settings: Settings, logger: Logger): Promise<void> {
  const shared = new SharedLimitStore(tellPrimary, logger)
  let serving: Serving | undefined
  let begun: Promise<void> = Promise.resolve()
  let peers: Peers | undefined

  const start = async ({ source, port, worker }: Extract<ToWorker, { kind: 'start' }>): Promise<void> => {
    const limits =
      settings.redisUrl === undefined
        ? { limits: shared, ping: async () => {}, close: async () => {} }
        : openLimitStores(settings.redisUrl, logger)
    const config = configOf(source, settings)
    peers = new Peers(tellPrimary, worker)
    serving = await startServing({ settings: { ...settings, port }, config, limits, logger, peers })
    tellPrimary({ kind: 'ready', address: serving.address })
  }
  const end = (how: 'stop' | 'retire'): void => {
    if (!serving) process.exit(0)
    serving[how]().then(
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
        begun = start(message).catch(giveUp)
        break
      case 'reload': {
        const config = configOf(message.source, settings)
        begun = begun.then(() => serving?.reload(config))
        break
      }
      case 'verdicts':
        shared.answer(message.verdicts)
        break
      case 'tell':
        peers?.tell(message.round, message.about).catch((error: unknown) => {
          logger.error({ err: error }, 'nothing is told of this worker')
        })
        break
      case 'told':
        peers?.hear(message.ask, message.reports)
        break
      default:
        end(message.kind)
    }
  })
  // Of a terminal, or of whoever stops all processes of a service: the primary process has it too, and says what to do.
  for (const signal of ['SIGINT', 'SIGHUP', 'SIGUSR2'] as const) process.on(signal, () => {})
  process.on('SIGTERM', () => tellPrimary({ kind: 'leaving' }))
  // Without the primary process there is no port any more. Else Node would end this process in the middle of its calls.
  if (cluster.worker) cluster.worker.exitedAfterDisconnect = true
  process.once('disconnect', () => end('stop'))
}

function tellPrimary(message: FromWorker): void {
  // Without a channel nobody waits for it.
  if (process.connected) process.send?.(message, undefined, undefined, () => {})
}

import cluster from 'node:cluster'
import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import type { GatewayConfig, Logger } from 'express-model-gateway'
import { readCommandLine } from './command-line.ts'
import { readConfigFile } from './config-file.ts'
import { ConfigReload } from './config-reload.ts'
import { demoConfig } from './demo-config.ts'
import { startDemoModels } from './demo-models/server.ts'
import { exitWithErrors } from './exit-with-errors.ts'
import { jsonLog } from './json-log.ts'
import { openLimitStores } from './limit-stores.ts'
import { printReadyMessage } from './ready-message.ts'
import { startServing } from './serving.ts'
import { configOf, readSettings, type Settings } from './settings.ts'
import { runWorker } from './worker.ts'
import { Workers } from './workers.ts'

/**
 * A second signal within this time counts as the same one: `npm start` passes on a Ctrl-C that the terminal has sent to
 * this process too. A later one ends the process at once.
 */
const SAME_SIGNAL_MS = 1000

/** The gateway in one process or in several. */
interface Running {
  readonly address: AddressInfo
  reload(source: object, config: GatewayConfig): Promise<void>
  /** Drains and ends the gateway; returns whether all processes ended without an error. */
  stop(): Promise<boolean>
  /** Ends all processes that this one has started, at once. */
  kill(): void
  /** Replaces all workers by new ones. */
  restart(): void
}

interface ConfigSource {
  readonly source: object
  close(): Promise<void>
}

async function openConfigSource({ configFile, configOrigin }: Settings): Promise<ConfigSource> {
  if (configFile !== undefined)
    return { source: await readConfigFile(configFile, configOrigin), close: async () => {} }
  const apiKey = randomUUID()
  const demo = await startDemoModels({ apiKey })
  return { source: demoConfig(demo.url, apiKey), close: () => demo.close() }
}

async function runSingle(settings: Settings, config: GatewayConfig, logger: Logger): Promise<Running> {
  const limits = await openLimitStores(settings.redisUrl, logger)
  const serving = await startServing({ settings, config, limits, logger })
  return {
    address: serving.address,
    reload: (_source, next) => serving.reload(next),
    stop: () => serving.stop().then(() => true),
    kill: () => {},
    restart: () => logger.warn({}, 'SIGUSR2 restarts workers one by one; set WORKERS to have workers'),
  }
}

async function runWorkers(
  count: number,
  settings: Settings,
  source: object,
  logger: Logger,
): Promise<Running> {
  const onCrashLoop = (): void => exitWithErrors(new Error('the workers die as soon as they are started'))
  const workers = new Workers({ count, settings, source, logger, onCrashLoop })
  // The worker has printed the reason.
  const address = await workers.start().catch(() => process.exit(1))
  return {
    address,
    reload: async (next) => workers.reload(next),
    stop: () => workers.stop(),
    kill: () => workers.kill(),
    restart: () => void workers.rollingRestart(),
  }
}

async function main(): Promise<void> {
  const settings = readSettings(process.env, readCommandLine(process.argv.slice(2)).config)
  const logger = jsonLog(settings.logLevel)
  // The last net: whatever forgets a rejection must not end everybody's calls.
  process.on('unhandledRejection', (error) => logger.error({ err: error }, 'a rejection went unhandled'))
  if (cluster.isWorker) return runWorker(settings, logger)
  // Without a listener, each of these signals would end the process before it is ready.
  for (const signal of ['SIGUSR2', 'SIGHUP'] as const) {
    if (signal === 'SIGUSR2' || settings.configFile !== undefined) process.on(signal, () => {})
  }
  const { source, close } = await openConfigSource(settings)
  const config = configOf(source, settings)
  const { configFile: file, workers } = settings
  const running = await (workers === undefined
    ? runSingle(settings, config, logger)
    : runWorkers(workers, settings, source, logger))
  const apply = running.reload
  const reload = file === undefined ? undefined : new ConfigReload({ settings, file, source, logger, apply })
  reload?.watch()
  // Without a config file SIGHUP keeps its default: it ends the process when the terminal closes.
  if (reload) process.on('SIGHUP', () => reload.now())
  process.on('SIGUSR2', running.restart)
  onStop(
    running.kill,
    async (signal) => {
      logger.info({ signal }, 'draining')
      reload?.close()
      const isClean = await running.stop()
      await close()
      process.exit(isClean ? 0 : 1)
    },
    logger,
  )
  printReadyMessage(running.address, settings)
}

function onStop(kill: () => void, stop: (signal: string) => Promise<void>, logger: Logger): void {
  let stoppingSince: number | undefined
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stoppingSince !== undefined) {
        if (performance.now() - stoppingSince <= SAME_SIGNAL_MS) return
        kill()
        process.exit(1)
      }
      stoppingSince = performance.now()
      stop(signal).catch((error: unknown) => {
        logger.error({ err: error }, 'stopping failed')
        process.exit(1)
      })
    })
  }
}

main().catch(exitWithErrors)

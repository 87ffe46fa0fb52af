import cluster from 'node:cluster'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { GatewayConfig, Logger } from 'express-model-gateway'
import type { Addresses } from './addresses.ts'
import { readCommandLine } from './command-line.ts'
import { readConfigFile } from './config-file.ts'
import { ConfigReload } from './config-reload.ts'
import { demoConfig } from './demo-config.ts'
import { endAtSignalsNoMore } from './early-signals.ts'
import { currentVariables, environmentFiles } from './environment.ts'
import { exitWithErrors } from './exit-with-errors.ts'
import { jsonLog, logWritten } from './json-log.ts'
import { openLimitStores } from './limit-stores.ts'
import { printReadyMessage } from './ready-message.ts'
import { startServing } from './serving.ts'
import { configOf, readSettings, type Settings } from './settings.ts'
import { startable } from './startable-config.ts'
import { runWorker } from './worker.ts'
import { Workers } from './workers.ts'

/**
 * A second signal within this time counts as the same one: `npm start` passes on a Ctrl-C that the terminal has sent to
 * this process too. A later one ends the process at once.
 */
const SAME_SIGNAL_MS = 1000
/** How long a start goes on after a signal, and how often it is looked at. */
const START_ENDS_WITHIN_MS = 3000
const LOOK_MS = 20

/** The gateway in one process or in several. */
interface Running {
  readonly addresses: Addresses
  reload(config: GatewayConfig): Promise<void>
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

/** The gateway while it does not serve yet. */
interface Starting extends Pick<Running, 'stop' | 'kill'> {
  stopped: boolean
  stop(): Promise<boolean>
}

async function openConfigSource({ configFile, configOrigin }: Settings): Promise<ConfigSource> {
  if (configFile !== undefined)
    return { source: await readConfigFile(configFile, configOrigin), close: async () => {} }
  const { startDemoModels } = await import('./demo-models/server.ts')
  const apiKey = randomUUID()
  const demo = await startDemoModels({ apiKey })
  return { source: demoConfig(demo.url, apiKey), close: () => demo.close() }
}

async function runSingle(settings: Settings, config: GatewayConfig, logger: Logger): Promise<Running> {
  const limits = await openLimitStores(settings.redisUrl, logger)
  const serving = await startServing({ settings, config, limits, logger })
  return {
    addresses: serving.addresses,
    reload: (next) => serving.reload(next),
    stop: () => serving.stop().then(() => true),
    kill: () => {},
    restart: () => logger.warn({}, 'SIGUSR2 restarts workers one by one; set WORKERS to have workers'),
  }
}

async function runWorkers(
  starting: Starting,
  count: number,
  settings: Settings,
  { resolved: source, region }: GatewayConfig,
  logger: Logger,
): Promise<Running> {
  const onCrashLoop = (): void => exitWithErrors(new Error('the workers die as soon as they are started'))
  // Secrets are read once for all: a file that changes meanwhile would give each worker another one.
  const workers = new Workers({ count, settings, source, logger, onCrashLoop })
  starting.stop = () => workers.stop()
  starting.kill = () => workers.kill()
  // The worker has printed the reason.
  const addresses = await workers
    .start()
    .catch(() => (starting.stopped ? new Promise<never>(() => {}) : process.exit(1)))
  return {
    addresses,
    // Workers that are started later are beside those that run, on the same database: of the same region.
    reload: async ({ resolved }) => workers.reload({ ...resolved, region }),
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
  let running: Running | undefined
  let reload: ConfigReload | undefined
  let reloadAtStart = false
  // Without a listener, each of these signals would end the process before it is ready.
  process.on('SIGUSR2', () => running?.restart())
  // Without a config file SIGHUP keeps its default: it ends the process when the terminal closes.
  if (settings.configFile !== undefined)
    process.on('SIGHUP', () => {
      if (reload) reload.now()
      else reloadAtStart = true
    })
  let demo: ConfigSource | undefined
  const starting = startingGateway(() => running)
  onStop(
    () => (running ?? starting).kill(),
    async (signal) => {
      logger.info({ signal }, 'draining')
      starting.stopped = true
      reload?.close()
      const isClean = await (running ?? starting).stop()
      await demo?.close()
      await logWritten()
      process.exit(isClean ? 0 : 1)
    },
    logger,
  )
  endAtSignalsNoMore()
  demo = await openConfigSource(settings)
  const config = configOf(demo.source, settings)
  const { configFile: file, configOrigin, workers } = settings
  running = await (workers === undefined
    ? runSingle(settings, config, logger)
    : runWorkers(starting, workers, settings, config, logger))
  if (starting.stopped) return
  if (file !== undefined)
    reload = new ConfigReload({
      files: [file, ...environmentFiles()],
      started: config,
      logger,
      read: () => readConfigFile(file, configOrigin),
      load: async (next) => startable(configOf(next, settings, currentVariables()), settings.regions),
      apply: running.reload,
    })
  reload?.watch()
  if (reloadAtStart) reload?.now()
  else reload?.ifChanged()
  printReadyMessage(running.addresses, settings)
}

/** Waits for a start that is soon done; ends another one as it is, because each migration is a transaction. */
function startingGateway(running: () => Running | undefined): Starting {
  return {
    stopped: false,
    kill: () => {},
    async stop() {
      const until = performance.now() + START_ENDS_WITHIN_MS
      while (!running() && performance.now() < until) await sleep(LOOK_MS)
      return running()?.stop() ?? true
    },
  }
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

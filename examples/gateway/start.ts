import cluster from 'node:cluster'
import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'express-model-gateway'
import { readCommandLine } from './command-line.ts'
import {
  configOf,
  currentVariables,
  environmentFiles,
  readSettings,
  type Settings,
} from './config/environment.ts'
import { startable } from './config/packages.ts'
import { type ReadConfig, readConfig } from './config/read-config.ts'
import { ConfigReload, type ConfigReloadOptions, changedSince } from './config/reload.ts'
import {
  type SentConfig,
  type ServedConfig,
  sentAgain,
  sentConfig,
  servedConfig,
} from './config/served-config.ts'
import { DEMO_KEY, DEMO_MODEL, demoConfig } from './demo-models/config.ts'
import { exitWithErrors } from './errors.ts'
import { startServing } from './serving/server.ts'
import { openLimitStores } from './stores/limit-stores.ts'
import { openLog } from './telemetry/log.ts'
import type { Addresses } from './workers/messages.ts'
import { Workers } from './workers/primary.ts'
import { runWorker } from './workers/worker.ts'

/**
 * A second signal within this time counts as the same one: `npm start` passes on a Ctrl-C that the terminal has sent to
 * this process too. A later one ends the process at once.
 */
const SAME_SIGNAL_MS = 1000
/** How long a start goes on after a signal, and how often it is checked. */
const START_ENDS_WITHIN_MS = 3000
const CHECK_INTERVAL_MS = 20

/** The gateway in one process or in several. */
interface Running {
  readonly addresses: Addresses
  reload(config: ServedConfig): Promise<void>
  /** Drains and ends the gateway; returns whether all processes ended without an error. */
  stop(): Promise<boolean>
  /** Ends all processes that this one has started, at once. */
  kill(): void
  /** Replaces all workers by new ones. */
  restart(): void
}

interface ConfigSource {
  readonly read: ReadConfig
  /** Ends what the config needs. */
  close(): Promise<void>
}

/** The gateway while it does not serve yet. */
interface Starting extends Pick<Running, 'stop' | 'kill'> {
  stopped: boolean
  stop(): Promise<boolean>
}

async function openConfigSource(settings: Settings): Promise<ConfigSource> {
  const { configFile } = settings
  if (configFile !== undefined)
    return {
      read: await readConfig({ ...settings, configFile, env: process.env }),
      close: async () => {},
    }
  const { startDemoModels } = await import('./demo-models/server.ts')
  const apiKey = randomUUID()
  const demo = await startDemoModels({ apiKey })
  const config = sentConfig(configOf(demoConfig(demo.url, apiKey), settings))
  return { read: { config, listed: undefined }, close: () => demo.close() }
}

async function runSingle(settings: Settings, config: ServedConfig, logger: Logger): Promise<Running> {
  const limits = await openLimitStores(settings.redisUrl, logger, config.onStoreError)
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
  config: ServedConfig,
  logger: Logger,
): Promise<Running> {
  if (count > 1 && settings.databaseUrl.startsWith('sqlite:'))
    logger.warn(
      { workers: count },
      'SQLite has one writer at a time: workers that write much wait for each other, which they do not with Postgres',
    )
  const onCrashLoop = (): void => exitWithErrors(new Error('the workers die as soon as they are started'))
  // Secrets are read once for all: a file that changes meanwhile would give each worker another one.
  const { region } = config
  const workers = new Workers({ count, settings, config: sentAgain(config), logger, onCrashLoop })
  starting.stop = () => workers.stop()
  starting.kill = () => workers.kill()
  // The worker has printed the reason.
  const addresses = await workers
    .start()
    .catch(() => (starting.stopped ? new Promise<never>(() => {}) : process.exit(1)))
  return {
    addresses,
    // Workers that are started later are beside those that run, on the same database: of the same region.
    reload: async (next) => {
      const sent = sentAgain(next)
      workers.reload({ ...sent, source: { ...sent.source, region } })
    },
    stop: () => workers.stop(),
    kill: () => workers.kill(),
    restart: () => void workers.rollingRestart(),
  }
}

async function main(): Promise<void> {
  const command = readCommandLine(process.argv.slice(2))
  const settings: Settings = {
    ...readSettings(process.env, command.config),
    ...('use' in command && { use: command.use }),
  }
  const logger = openLog(settings.logLevel)
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
  let closeDemo = async (): Promise<void> => {}
  const starting = startingGateway(() => running)
  onStop(
    () => (running ?? starting).kill(),
    async (signal) => {
      logger.info({ signal }, 'draining')
      starting.stopped = true
      reload?.close()
      const isClean = await (running ?? starting).stop()
      await closeDemo()
      await logger.close()
      process.exit(isClean ? 0 : 1)
    },
    logger,
  )
  const startedAt = Date.now()
  const source = await openConfigSource(settings)
  closeDemo = source.close
  const config = servedConfig(source.read.config)
  const { configFile: file, workers } = settings
  running = await (workers === undefined
    ? runSingle(settings, config, logger)
    : runWorkers(starting, workers, settings, config, logger))
  if (starting.stopped) return
  if (file !== undefined) {
    reload = configReload(file, settings, {
      read: source.read,
      started: config,
      apply: running.reload,
      logger,
    })
    reload.watch()
    if (reloadAtStart) reload.now()
    else if (await changedSince(startedAt, [file, ...environmentFiles(), ...config.secretFiles]))
      reload.ifChanged()
  }
  printReadyMessage(running.addresses, settings)
}

/**
 * Returns the reloads of a config file.
 *
 * @param read the config as it was read at the start.
 */
function configReload(
  file: string,
  settings: Settings,
  {
    read,
    ...options
  }: { readonly read: ReadConfig } & Pick<ConfigReloadOptions, 'started' | 'apply' | 'logger'>,
): ConfigReload {
  /** The config before, from which known accounts and keys are taken. */
  let before: ReadConfig | undefined = read
  return new ConfigReload({
    ...options,
    files: [file, ...environmentFiles()],
    read: async () => {
      const next = await readConfig({ ...settings, configFile: file, env: currentVariables() }, before)
      before = next.listed === undefined ? undefined : next
      return next.config
    },
    load: async (next) => startable(servedConfig(next as SentConfig, currentVariables()), settings.redisUrl),
  })
}

/** Waits for a start that is soon done; ends another one as it is, because each migration is a transaction. */
function startingGateway(running: () => Running | undefined): Starting {
  return {
    stopped: false,
    kill: () => {},
    async stop() {
      const until = performance.now() + START_ENDS_WITHIN_MS
      while (!running() && performance.now() < until) await sleep(CHECK_INTERVAL_MS)
      return running()?.stop() ?? true
    },
  }
}

function onStop(kill: () => void, stop: (signal: string) => Promise<void>, logger: Logger): void {
  let stoppingSince: number | undefined
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const before = process.listeners(signal)
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
    // The listeners of command.ts are removed last: without any listener, the signal would end the process.
    for (const listener of before) process.off(signal, listener)
  }
}

main().catch(exitWithErrors)

/** Prints the addresses of the gateway, how to sign in to the console and, with the demo config, a first request to try. */
function printReadyMessage({ callers, admin }: Addresses, settings: Settings): void {
  const origin = originOf(callers)
  if (admin) console.log(`The console, /admin and /metrics are at ${originOf(admin)}`)
  console.log(`express-model-gateway is ready at ${origin}`)
  const isDemo = settings.configFile === undefined
  const ofKeys = `Sign in with an API key${isDemo ? ` (${DEMO_KEY})` : ''} to see its account`
  const ofOperators =
    settings.adminToken === undefined
      ? 'set ADMIN_TOKEN to sign in as an operator'
      : 'or with the ADMIN_TOKEN to run the service'
  console.log(`Console: ${settings.consoleUrl ?? `${originOf(admin ?? callers)}/console`}`)
  console.log(`${ofKeys}; ${ofOperators}.`)
  if (!isDemo) return
  const body = JSON.stringify({ model: DEMO_MODEL, messages: [{ role: 'user', content: 'Hello!' }] })
  console.log('It uses the demo config, whose models answer by rule and are no AI. Try:')
  console.log(
    `  curl ${origin}/v1/chat/completions -H 'Authorization: Bearer ${DEMO_KEY}' -H 'Content-Type: application/json' -d '${body}'`,
  )
}

function originOf({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

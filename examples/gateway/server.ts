import { randomUUID } from 'node:crypto'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ConfigError, type GatewayConfig, loadConfig } from 'express-model-gateway'
import { createGateway } from './app.ts'
import { DEMO_KEY, DEMO_MODEL, demoConfig } from './demo-config.ts'
import { startDemoModels } from './demo-models/server.ts'
import { httpServer } from './http-server.ts'
import { jsonLog } from './json-log.ts'
import { Readiness } from './readiness.ts'
import { readConfigFile, readSettings, type Settings } from './settings.ts'
import { drainServer } from './shutdown.ts'
import { openDurableStores, openLimitStores } from './stores.ts'

/** `npm start` hands on a Ctrl-C that the terminal has sent to this process too; only a later one is impatience. */
const SAME_SIGNAL_MS = 1000

interface LoadedConfig {
  readonly config: GatewayConfig
  close(): Promise<void>
}

async function loadGatewayConfig(settings: Settings): Promise<LoadedConfig> {
  const overrides = settings.region === undefined ? {} : { region: settings.region }
  if (settings.configFile !== undefined) {
    const source = await readConfigFile(settings.configFile)
    return { config: loadConfig({ ...source, ...overrides }, process.env), close: async () => {} }
  }
  const apiKey = randomUUID()
  const demo = await startDemoModels({ apiKey })
  return { config: loadConfig({ ...demoConfig(demo.url, apiKey), ...overrides }), close: () => demo.close() }
}

async function main(): Promise<void> {
  const settings = readSettings(process.env)
  const logger = jsonLog(settings.logLevel)
  const { config, close: closeConfig } = await loadGatewayConfig(settings)
  const durable = await openDurableStores(settings.databaseUrl, config, logger).catch((error: unknown) => {
    throw new ConfigError([`DATABASE_URL: the database cannot be opened (${messageOf(error)})`])
  })
  const { limits, ping: pingLimits, close: closeLimits } = openLimitStores(settings.redisUrl, logger)
  const readiness = new Readiness(async () => {
    await durable.ping()
    // Where nothing is counted locally, every limited call is refused meanwhile.
    if (config.onStoreError === 'refuse') await pingLimits()
  })
  const gateway = createGateway({
    config,
    stores: { ...durable, limits },
    logger,
    readiness,
    adminToken: settings.adminToken,
  })
  const http = httpServer(gateway.app).on('upgrade', gateway.upgrades.handle)
  await gateway.ready
  const server = await listen(http, settings)
  announce(server, settings)

  const stop = async (signal: string): Promise<void> => {
    logger.info({ signal }, 'draining')
    await drainServer(server, gateway.upgrades, readiness, logger)
    await gateway.close()
    closeLimits()
    await durable.close()
    await closeConfig()
    process.exit(0)
  }
  let stoppingSince: number | undefined
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stoppingSince !== undefined) {
        if (performance.now() - stoppingSince > SAME_SIGNAL_MS) process.exit(1)
        return
      }
      stoppingSince = performance.now()
      stop(signal).catch((error: unknown) => {
        logger.fatal({ err: error }, 'stopping failed')
        process.exit(1)
      })
    })
  }
}

/** @throws {ConfigError} when the address cannot be had. */
function listen(server: Server, { port, host }: Settings): Promise<Server> {
  return new Promise((resolve, reject) => {
    const refuse = (error: NodeJS.ErrnoException): void => {
      const fault =
        error.code === 'EADDRINUSE'
          ? `PORT: ${port} is in use on ${host}; choose another one`
          : `${error.code === 'EACCES' ? 'PORT' : 'HOST'}: cannot listen on ${host}, port ${port} (${error.code})`
      reject(new ConfigError([fault]))
    }
    server.once('error', refuse).listen(port, host, () => {
      server.off('error', refuse)
      resolve(server)
    })
  })
}

function announce(server: Server, settings: Settings): void {
  const { address, family, port } = server.address() as AddressInfo
  const origin = `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
  console.log(`express-model-gateway is ready at ${origin}`)
  if (settings.configFile !== undefined) return
  const body = JSON.stringify({ model: DEMO_MODEL, messages: [{ role: 'user', content: 'Hello!' }] })
  console.log('It runs on the demo config: its models answer by rule and are no AI. Try:')
  console.log(
    `  curl ${origin}/v1/chat/completions -H 'Authorization: Bearer ${DEMO_KEY}' -H 'Content-Type: application/json' -d '${body}'`,
  )
}

main().catch((error: unknown) => {
  if (error instanceof ConfigError) for (const fault of error.faults) console.error(fault)
  else console.error(messageOf(error))
  process.exit(1)
})

/** One line, whatever was thrown. */
function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replaceAll(/\s+/g, ' ')
}

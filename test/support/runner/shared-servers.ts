import { BUILT_GATEWAY, isBuilt } from '../built-gateway.ts'
import { SHARED_POSTGRES } from '../postgres-databases.ts'
import { startPostgres, WITHOUT_POSTGRES } from '../postgres-server.ts'

/** The servers and files that all test files of a run share. */
export interface SharedServers {
  /** Removes what a process of tests has left there. */
  clear(pid: number): Promise<void>
  close(): Promise<void>
}

/**
 * Starts what all test files of a run share, and names it in the environment: one Postgres, with a database for each
 * that asks, and what Node has compiled of the gateway. Tests start some hundred gateways and kill most; only one that
 * ends by itself leaves that in Node's compile cache.
 *
 * @param options.built starts the gateways of tests from `dist`, unless a source has changed since the build.
 */
export async function shareServers({ built }: { built: boolean }): Promise<SharedServers> {
  if (built && isBuilt()) process.env[BUILT_GATEWAY] = '1'
  process.env.NODE_COMPILE_CACHE ??= `${process.cwd()}/node_modules/.cache/compile`
  const postgres = WITHOUT_POSTGRES ? undefined : startPostgres({ settings: { max_connections: 500 } })
  // It reads the environment when it is loaded.
  const { startGatewayProcess } = await import('../gateway-process.ts')
  const gateway = await startGatewayProcess()
  gateway.kill('SIGTERM')
  await gateway.exited
  const server = await postgres
  await server?.prepareCopies()
  if (server) process.env[SHARED_POSTGRES] = `${server.port}`
  return { clear: async (pid) => server?.dropDatabasesOf(pid), close: async () => server?.close() }
}

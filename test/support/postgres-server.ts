import { execFileSync } from 'node:child_process'
import { chownSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fastFolder } from './fast-folder.ts'
import { freePort } from './free-port.ts'
import type { Certified } from './own-authority.ts'
import { type PostgresDatabases, postgresDatabases } from './postgres-databases.ts'
import { PostgresProcess } from './postgres-process.ts'
import { POSTGRES, WITHOUT_POSTGRES } from './postgres-programs.ts'

export { WITHOUT_POSTGRES }

/** A real Postgres of its own, that a test may stop in any way. */
export interface PostgresServer extends PostgresDatabases {
  readonly port: number
  /** Ends it in good order: connections are cut, what was committed is written. */
  stop(): Promise<void>
  /** SIGKILL to it and all its processes, as when the machine loses power, but for what the system still writes. */
  kill(): Promise<void>
  /** Starts it again, on the same port, with the same data. */
  start(): Promise<void>
  /** SIGSTOP to it and all its processes: connections stay open and nothing is answered. */
  freeze(): void
  /** SIGCONT: what was asked meanwhile is done now. */
  thaw(): void
  /** Has it show another certificate from its next start on; it was started with one. */
  certify(certified: Certified): void
  close(): Promise<void>
}

/** Options of {@link startPostgres}. */
export interface PostgresServerOptions {
  /** Waits for the disk at every commit, as a real one does. Defaults to false, which is much faster. */
  fsync?: boolean
  /** Further settings, by their name. */
  settings?: Record<string, string | number>
  /** A program, and its arguments, that the server is run with. */
  runWith?: readonly string[]
  /** The port of a primary, which it follows as a standby until it is promoted by `pg_promote()`. */
  standbyOf?: number
  /** The certificate of its TLS. Defaults to none: it has no TLS. */
  tls?: Certified
}

/**
 * Starts a Postgres on a free port, in a folder of its own. Its language is not "C" but American English, in which texts
 * do not sort by their bytes.
 */
export async function startPostgres(options: PostgresServerOptions = {}): Promise<PostgresServer> {
  if (!POSTGRES) throw new Error(`${WITHOUT_POSTGRES}`)
  const { folder: programs, user } = POSTGRES
  const { fsync = false, settings = {}, runWith = [], standbyOf, tls } = options
  const folder = mkdtempSync(join(fsync ? tmpdir() : fastFolder(), 'gateway-postgres-'))
  if (user) chownSync(folder, user.uid, user.gid)
  const data = join(folder, 'data')
  const locale = ['--locale=C.UTF-8', '--locale-provider=icu', '--icu-locale=en-US', '--encoding=UTF8']
  const quick = ['--no-sync', '--no-instructions', '--auth=trust', '--username=postgres']
  if (standbyOf === undefined)
    execFileSync(join(programs, 'initdb'), ['--pgdata', data, ...locale, ...quick], {
      ...user,
      stdio: 'pipe',
    })
  // The programs may be links, and not all of them there.
  else
    copyPrimary(
      join(dirname(realpathSync(join(programs, 'postgres'))), 'pg_basebackup'),
      standbyOf,
      data,
      user,
    )
  const [ssl_cert_file, ssl_key_file] = [join(folder, 'server.pem'), join(folder, 'server.key')]
  const certify = ({ cert, key }: Certified): void => {
    writeFileSync(ssl_cert_file, cert)
    writeFileSync(ssl_key_file, key, { mode: 0o600 })
    if (user) chownSync(ssl_key_file, user.uid, user.gid)
  }
  if (tls) certify(tls)
  const port = await freePort()
  const server = new PostgresProcess([...runWith, join(programs, 'postgres')], user, {
    data_directory: data,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    port,
    max_connections: 200,
    fsync: fsync ? 'on' : 'off',
    ...(tls && { ssl: 'on', ssl_cert_file, ssl_key_file }),
    ...settings,
  })
  // A test that fails must not leave it behind.
  const atExit = () => {
    server.killAll()
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  }
  process.once('exit', atExit)
  await server.start()

  return {
    ...postgresDatabases(port),
    port,
    stop: () => server.stop(),
    kill: () => server.kill(),
    start: () => server.start(),
    freeze: () => server.signalAll('SIGSTOP'),
    thaw: () => server.signalAll('SIGCONT'),
    certify,
    async close() {
      await server.kill()
      process.off('exit', atExit)
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
    },
  }
}

function copyPrimary(program: string, port: number, data: string, user: object | undefined): void {
  const from = ['--host=127.0.0.1', `--port=${port}`, '--username=postgres']
  const how = ['--write-recovery-conf', '--wal-method=stream', '--checkpoint=fast', '--no-sync']
  execFileSync(program, [...from, ...how, `--pgdata=${data}`], { ...user, stdio: 'pipe' })
}

import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Debian keeps Postgres's own programs out of the PATH. */
const DEBIAN = '/usr/lib/postgresql'

interface PostgresPrograms {
  readonly folder: string
  /** The user that they run as where this process is root's: they refuse to run as root. */
  readonly user: { readonly uid: number; readonly gid: number } | undefined
}

const found = find()

/** Where the machine's Postgres is, and as whom it runs; undefined when it cannot be used. */
export const POSTGRES: PostgresPrograms | undefined = typeof found === 'string' ? undefined : found

/** Why tests with Postgres do not run here; false: they do. Fits the `skip` of a test's options. */
export const WITHOUT_POSTGRES: string | false = typeof found === 'string' ? found : false

function find(): PostgresPrograms | string {
  const folder = folders().find(
    (path) => existsSync(join(path, 'initdb')) && existsSync(join(path, 'postgres')),
  )
  if (folder === undefined) return 'there is no Postgres (initdb, postgres) on this machine'
  if (process.getuid?.() !== 0) return { folder, user: undefined }
  const [uid, gid] = ['-u', '-g'].map((which) => Number(spawnSync('id', [which, 'postgres']).stdout || NaN))
  if (!uid || !gid) return 'Postgres does not run as root, and this machine has no user "postgres"'
  return { folder, user: { uid, gid } }
}

function folders(): string[] {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN) : []
  const newestFirst = versions.sort((one, other) => Number(other) - Number(one))
  return [
    ...(process.env.PATH ?? '').split(delimiter),
    ...newestFirst.map((version) => join(DEBIAN, version, 'bin')),
  ]
}

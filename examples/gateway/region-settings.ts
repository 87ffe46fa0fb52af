import { secretIn } from './secret-settings.ts'

/** The other regions, each with a Postgres of its own. */
export interface RegionSettings {
  /** The URLs of the databases by the names of the regions; this region's own may be among them. */
  readonly databases: ReadonlyMap<string, string>
  /** How long keys of a region are served while it does not answer, in milliseconds. */
  readonly maxAwayMs: number
}

const DEFAULT_AWAY_HOURS = 24
const MAX_HOURS = 31 * 24
const HOUR_MS = 3_600_000
/** Between two entries, on one line or on several. */
const SEPARATOR = /[\s,]+(?=[\w.-]+=postgres)/

/** Reads `REGION_DATABASES` and `REGION_MAX_AWAY`; undefined if there are no other regions. */
export function readRegions(
  env: NodeJS.ProcessEnv,
  databaseUrl: string,
  faults: string[],
): RegionSettings | undefined {
  const hours = Number(env.REGION_MAX_AWAY || DEFAULT_AWAY_HOURS)
  if (!(Number.isInteger(hours) && hours >= 1 && hours <= MAX_HOURS))
    faults.push(`REGION_MAX_AWAY: must be whole hours from 1 to ${MAX_HOURS}`)
  const given = secretIn(env, 'REGION_DATABASES', faults)?.trim()
  if (!given) return undefined
  const databases = new Map<string, string>()
  for (const entry of given.split(SEPARATOR)) {
    const [, name, url] = /^([\w.-]+)=(postgres(?:ql)?:\/\/\S+)$/.exec(entry) ?? []
    // The entry may hold a password.
    if (name === undefined || url === undefined)
      faults.push('REGION_DATABASES: must be "NAME=postgres://…", one for each region, separated by commas')
    else databases.set(name, url)
  }
  if (!databaseUrl.startsWith('postgres'))
    faults.push('REGION_DATABASES: needs a DATABASE_URL of this region, "postgres://…"')
  return { databases, maxAwayMs: hours * HOUR_MS }
}

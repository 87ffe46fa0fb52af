import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseEnv } from 'node:util'
import { ConfigError } from 'express-model-gateway/config'

type Variables = Readonly<Record<string, string | undefined>>

/** The `.env`, and the environment without it. */
let loaded: { readonly file: string; readonly given: Variables } | undefined

/** Adds the `.env` beside a config, or of the current folder, to the environment. A variable that is set stays as it is. */
export function loadEnvironment(config: string | undefined): void {
  loaded = { file: join(config === undefined ? '.' : dirname(config), '.env'), given: { ...process.env } }
  Object.assign(process.env, currentVariables())
}

/** Returns the files that {@link currentVariables} reads. */
export function environmentFiles(): readonly string[] {
  return loaded ? [loaded.file] : []
}

/**
 * Returns the environment with the `.env` as it is now. `process.env` stays as it was at the start: a worker that is
 * started later must have the settings of the others.
 */
export function currentVariables(): Variables {
  return loaded ? { ...variablesIn(loaded.file), ...loaded.given } : process.env
}

function variablesIn(file: string): Variables {
  try {
    return parseEnv(readFileSync(file, 'utf8').replace(/^\uFEFF/, ''))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw new ConfigError([`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`])
  }
}

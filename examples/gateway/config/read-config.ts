import { stat } from 'node:fs/promises'
import { type ResourceLimits, Worker } from 'node:worker_threads'
import { ConfigError } from 'express-model-gateway/config'
import { readConfigFile } from './config-file.ts'
import { configOf, type Settings, type Variables } from './environment.ts'
import { type SentConfig, sentConfig } from './served-config.ts'

const MIB = 1024 * 1024
/** A larger file is read in a thread: it would hold up all calls, and its objects would stay in the memory of the process. */
const LARGE_BYTES = MIB

/** A config file, and what is needed to read it. */
export interface ConfigPlace extends Pick<Settings, 'configOrigin' | 'region'> {
  readonly configFile: string
  readonly env: Variables
}

/** The answer of the thread. */
export type ReadConfig =
  | { readonly config: SentConfig }
  | { readonly faults: readonly string[]; readonly secretFiles: ReadonlySet<string> }

/**
 * Reads and validates a config file.
 *
 * @throws {ConfigError} naming all faults.
 */
export async function readConfig(place: ConfigPlace): Promise<SentConfig> {
  // A file that cannot be read is a fault of the config, which is found when it is read.
  const { size } = await stat(place.configFile).catch(() => ({ size: 0 }))
  return size > LARGE_BYTES ? readInThread(place, size) : readHere(place)
}

export async function readHere({ configFile, configOrigin, region, env }: ConfigPlace): Promise<SentConfig> {
  return sentConfig(configOf(await readConfigFile(configFile, configOrigin), { region }, env))
}

/**
 * Returns the memory limits of the thread, in MiB. Without a limit V8 collects garbage later, and the process grows. YAML of 200,000
 * keys that has anchors needs about twelve times the size of its file.
 */
function limitsFor(bytes: number): ResourceLimits {
  return { maxYoungGenerationSizeMb: 32, maxOldGenerationSizeMb: 64 + (12 * bytes) / MIB }
}

async function readInThread(place: ConfigPlace, bytes: number): Promise<SentConfig> {
  const answer = await answerOfThread(place, limitsFor(bytes)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ERR_WORKER_OUT_OF_MEMORY') throw error
    return answerOfThread(place)
  })
  if ('config' in answer) return answer.config
  throw new ConfigError(answer.faults, answer.secretFiles)
}

function answerOfThread(place: ConfigPlace, resourceLimits: ResourceLimits = {}): Promise<ReadConfig> {
  return new Promise((resolve, reject) => {
    // The package says where it is: its source here, its build elsewhere.
    const thread = new Worker(new URL(import.meta.resolve('#config-thread')), {
      workerData: { ...place, env: { ...place.env } },
      name: 'config',
      resourceLimits,
    })
    thread.once('message', resolve)
    thread.once('error', reject)
    thread.once('exit', (code) => reject(new Error(`the thread that reads the config ended with ${code}`)))
  })
}

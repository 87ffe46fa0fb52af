import { stat } from 'node:fs/promises'
import { type ResourceLimits, Worker } from 'node:worker_threads'
import { ConfigError, type GatewayConfig, type LoadedConfig } from 'express-model-gateway/config'
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

/** A config that was read. */
export interface ReadConfig {
  readonly config: SentConfig
  /** Identifies its accounts and keys as the file has them. Undefined if they depend on more than the file. */
  readonly listed: string | undefined
}

/** The data of the thread. */
export interface ThreadData extends ConfigPlace {
  /** Identifies accounts and keys that need not be read again. */
  readonly known: string | undefined
}

/** The answer of the thread. The known accounts and keys are not in it. */
export type ThreadAnswer =
  | (ReadConfig & { readonly isKnown: boolean })
  | { readonly faults: readonly string[]; readonly secretFiles: ReadonlySet<string> }

/**
 * Reads and validates a config file. Accounts and keys of a large one are taken from the config before if it has the same: a
 * new price does not wait for them.
 *
 * @throws {ConfigError} naming all faults.
 */
export async function readConfig(place: ConfigPlace, before?: ReadConfig): Promise<ReadConfig> {
  // A file that cannot be read is a fault of the config, which is found when it is read.
  const { size } = await stat(place.configFile).catch(() => ({ size: 0 }))
  if (size <= LARGE_BYTES) return readHere(place)
  const { config, listed, isKnown } = await readInThread({ ...place, known: before?.listed }, size)
  if (!isKnown || !before) return { config, listed }
  const { accounts, keys } = before.config
  return { config: { ...config, accounts, keys }, listed }
}

export async function readHere(
  { configFile, configOrigin, region, env }: ConfigPlace,
  known?: string,
): Promise<ReadConfig & { readonly isKnown: boolean }> {
  const { value, listed, isKnown } = await readConfigFile(configFile, configOrigin, known)
  const config = configOf(value, { region }, env)
  return {
    config: sentConfig(config),
    listed: isKnown || hasAllSecrets(value, config) ? listed : undefined,
    isKnown,
  }
}

/** Whether the secrets of all keys are in the file itself: a key whose secret was read from elsewhere is a new object. */
function hasAllSecrets({ keys = [] }: Partial<GatewayConfig>, { resolved }: LoadedConfig): boolean {
  return keys.every((key, i) => key === (resolved as GatewayConfig).keys?.[i])
}

/**
 * Returns the memory limits of the thread, in MiB. Without a limit V8 collects garbage later, and the process grows. YAML of 200,000
 * keys that has anchors needs about twelve times the size of its file.
 */
function limitsFor(bytes: number): ResourceLimits {
  return { maxYoungGenerationSizeMb: 32, maxOldGenerationSizeMb: 64 + (12 * bytes) / MIB }
}

async function readInThread(data: ThreadData, bytes: number) {
  const answer = await answerOfThread(data, limitsFor(bytes)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ERR_WORKER_OUT_OF_MEMORY') throw error
    return answerOfThread(data)
  })
  if ('config' in answer) return answer
  throw new ConfigError(answer.faults, answer.secretFiles)
}

function answerOfThread(data: ThreadData, resourceLimits: ResourceLimits = {}): Promise<ThreadAnswer> {
  return new Promise((resolve, reject) => {
    // The package says where it is: its source here, its build elsewhere.
    const thread = new Worker(new URL(import.meta.resolve('#config-thread')), {
      workerData: { ...data, env: { ...data.env } },
      name: 'config',
      resourceLimits,
    })
    thread.once('message', resolve)
    thread.once('error', reject)
    thread.once('exit', (code) => reject(new Error(`the thread that reads the config ended with ${code}`)))
  })
}

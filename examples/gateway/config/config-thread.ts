import { parentPort, workerData } from 'node:worker_threads'
import { ConfigError } from 'express-model-gateway/config'
import { type ConfigPlace, type ReadConfig, readHere } from './read-config.ts'

const answer: ReadConfig = await readHere(workerData as ConfigPlace).then(
  (config) => ({ config }),
  (error: unknown) => {
    if (!(error instanceof ConfigError)) throw error
    return { faults: error.faults, secretFiles: error.secretFiles }
  },
)
const pages = 'config' in answer ? [...answer.config.accounts, ...answer.config.keys] : []
parentPort?.postMessage(answer, [...new Set(pages.map(({ json }) => json.buffer))])

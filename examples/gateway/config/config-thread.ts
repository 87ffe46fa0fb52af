import { parentPort, workerData } from 'node:worker_threads'
import { ConfigError } from 'express-model-gateway/config'
import { readHere, type ThreadAnswer, type ThreadData } from './read-config.ts'

const data = workerData as ThreadData
const answer: ThreadAnswer = await readHere(data, data.known).catch((error: unknown) => {
  if (!(error instanceof ConfigError)) throw error
  return { faults: error.faults, secretFiles: error.secretFiles }
})
const pages = 'config' in answer ? [...answer.config.accounts, ...answer.config.keys] : []
parentPort?.postMessage(answer, [...new Set(pages.map(({ json }) => json.buffer))])

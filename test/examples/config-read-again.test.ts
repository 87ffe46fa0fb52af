import assert from 'node:assert/strict'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { readConfigFile } from '../../examples/gateway/config/config-file.ts'
import {
  currentVariables,
  environmentFiles,
  loadEnvironment,
} from '../../examples/gateway/config/environment.ts'
import { ConfigReload } from '../../examples/gateway/config/reload.ts'
import { loadConfig } from '../support/any-config.ts'

import { recordingLogger } from '../support/app-server.ts'
import { temporaryFolder } from '../support/gateway-process.ts'
import { until } from '../support/until.ts'

const LINE = {
  id: 'l',
  provider: 'p',
  protocol: 'openai',
  baseUrl: 'http://127.0.0.1:1/v1',
  models: { m: 'u' },
}
const CONFIG = { models: [{ id: 'm', kind: 'chat' }], lines: [LINE] }
const withKey = (key: object) => JSON.stringify({ ...CONFIG, lines: [{ ...LINE, ...key }] })

/** Applies faulty files to a running config, and returns how often it is read in a minute in which nothing changes. */
async function readsOf(t: TestContext, break_: (folder: string) => Promise<unknown>) {
  const folder = await temporaryFolder()
  t.after(folder.remove)
  const file = join(folder.path, 'config.json')
  await writeFile(file, JSON.stringify(CONFIG))
  loadEnvironment(file)
  let reads = 0
  let done = 0
  const reload = new ConfigReload({
    files: [file, ...environmentFiles()],
    started: loadConfig(CONFIG),
    logger: recordingLogger(),
    read: async () => {
      reads++
      return (await readConfigFile(file, '--config').finally(() => done++)).value
    },
    load: async (source) => loadConfig(source, currentVariables()),
    apply: async () => {},
  })
  t.after(() => reload.close())
  await break_(folder.path)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  reload.watch()
  reload.ifChanged()
  for (let second = 0; second <= 60; second++) {
    await until(() => done === reads)
    for (let i = 0; i < 10; i++) await new Promise(setImmediate)
    t.mock.timers.tick(1000)
  }
  return reads
}

describe('a config with faults in which nothing changes', () => {
  for (const [fault, content] of [
    ['no JSON', '{'],
    ['no config', '{}'],
    ['a wrong member', JSON.stringify({ ...CONFIG, more: 1 })],
    ['a variable that is not set', withKey({ apiKey: 'env:NOT_SET_ANYWHERE' })],
  ] as const)
    it(`is read once: ${fault}`, async (t) => {
      assert.equal(await readsOf(t, (folder) => writeFile(join(folder, 'config.json'), content)), 1)
    })

  for (const [fault, break_] of [
    [
      'its file is a folder',
      (folder) => rm(join(folder, 'config.json')).then(() => mkdir(join(folder, 'config.json'))),
    ],
    ['its environment is a folder', (folder) => mkdir(join(folder, '.env'))],
    [
      'the file of a secret is not there',
      (folder) => writeFile(join(folder, 'config.json'), withKey({ apiKey: `file:${folder}/key` })),
    ],
    [
      'the file of a certificate is not there',
      (folder) => writeFile(join(folder, 'config.json'), withKey({ tls: { ca: `${folder}/ca.pem` } })),
    ],
  ] as [string, (folder: string) => Promise<unknown>][])
    it(`is read again, because a file may be readable then: ${fault}`, async (t) => {
      const reads = await readsOf(t, break_)
      assert.ok(reads > 8, `${reads} times`)
    })
})

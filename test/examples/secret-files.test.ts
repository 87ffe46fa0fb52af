import assert from 'node:assert/strict'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { readConfigFile } from '../../examples/gateway/config/config-file.ts'
import { readSettings } from '../../examples/gateway/config/environment.ts'
import { ConfigReload } from '../../examples/gateway/config/reload.ts'
import type { ConfigError } from '../../lib/index.ts'
import { loadConfig } from '../support/any-config.ts'
import { recordingLogger } from '../support/app-server.ts'
import { type AssembledGateway, assembledGateway } from '../support/assembled-gateway.ts'
import { chatBody } from '../support/gateway.ts'
import { answerJson, chatAnswer, type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts'
import { until } from '../support/until.ts'

interface Rotating {
  readonly served: AssembledGateway
  readonly upstream: ScriptedUpstream
  readonly file: string
  readonly source: object
  /** The keys that the upstream takes. */
  readonly good: Set<string>
  ask(): Promise<number>
}

/** A gateway whose line has its key in a file. */
async function rotating(t: TestContext): Promise<Rotating> {
  const folder = await mkdtemp(join(tmpdir(), 'rotating-'))
  const file = join(folder, 'key')
  await writeFile(file, 'key-1\n')
  const good = new Set(['key-1'])
  const upstream = await startUpstream((res, { headers }) =>
    good.has(String(headers.authorization).slice('Bearer '.length))
      ? chatAnswer(res)
      : answerJson(res, 401, { error: { message: 'Incorrect API key provided', code: 'invalid_api_key' } }),
  )
  const source = {
    models: [{ id: 'chat', kind: 'chat' }],
    lines: [
      {
        id: 'line',
        provider: 'p',
        protocol: 'openai',
        baseUrl: `${upstream.url}/v1`,
        apiKey: `file:${file}`,
        models: { chat: 'up' },
      },
    ],
  }
  const served = await assembledGateway(t, source)
  t.after(() => upstream.close())
  t.after(() => rm(folder, { recursive: true }))
  const ask = async (): Promise<number> => {
    const answer = await served.send('/v1/chat/completions', chatBody())
    await answer.arrayBuffer()
    return answer.status
  }
  return { served, upstream, file, source, good, ask }
}

const used = ({ upstream }: Rotating) => upstream.requests.at(-1)?.headers.authorization

describe('the key of a line in a file', () => {
  for (const how of ['written', 'replaced'] as const)
    it(`is taken over when the file is ${how}, and no call fails meanwhile`, async (t) => {
      const line = await rotating(t)
      const { file, good, ask, served } = line
      good.add('key-2')
      const statuses = new Set<number>()
      let running = true
      const load = (async () => {
        while (running) statuses.add(await ask())
      })()
      if (how === 'written') await writeFile(file, 'key-2')
      else {
        await writeFile(`${file}.new`, 'key-2')
        await rename(`${file}.new`, file)
      }
      await until(() => used(line) === 'Bearer key-2', 'the new key')
      good.delete('key-1')
      for (let i = 0; i < 20; i++) statuses.add(await ask())
      running = false
      await load
      assert.deepEqual([...statuses], [200])
      assert.doesNotMatch(JSON.stringify(served.logged), /key-[12]/)
    })

  it('stays in use while the file is gone or empty, and the log says why', async (t) => {
    const line = await rotating(t)
    const { file, good, ask, served } = line
    const faults = () => served.logged.filter(({ level }) => level === 'error').length
    await writeFile(file, '')
    await until(() => faults() === 1, 'the fault of the empty file')
    assert.equal(await ask(), 200)
    await rm(file)
    await until(() => faults() === 2, 'the fault of the missing file')
    assert.equal(await ask(), 200)
    assert.equal(used(line), 'Bearer key-1')
    assert.match(JSON.stringify(served.logged), /lines\[0\]\.apiKey: the file .* cannot be read \(ENOENT\)/)
    good.add('key-3')
    await writeFile(file, 'key-3')
    await until(() => served.logged.some(({ message }) => message === 'config reloaded'), 'the reload')
    assert.equal(await ask(), 200)
    assert.equal(used(line), 'Bearer key-3')
  })

  it('is read again with the config that was given, whatever its object has become', async (t) => {
    const { served, source, file, good, ask } = await rotating(t)
    const { models } = source as { models: object[] }
    const reloaded = served.gateway.reload(source)
    models.push({ id: 'unfinished', kind: 'chat' })
    await reloaded
    good.add('key-6')
    await writeFile(file, 'key-6')
    await until(() => served.logged.some(({ message }) => message === 'config reloaded'), 'the reload')
    assert.equal(await ask(), 200)
    const answer = await served.send('/v1/chat/completions', { ...chatBody(), model: 'unfinished' })
    assert.equal(answer.status, 404)
    await answer.arrayBuffer()
  })

  it('is read again by a reload, which then watches the files that it names', async (t) => {
    const line = await rotating(t)
    const { served, source, file, good, ask } = line
    const next = `${file}-next`
    await writeFile(next, 'key-4')
    good.add('key-4')
    const moved = JSON.parse(JSON.stringify(source).replaceAll(file, next))
    await served.gateway.reload(moved)
    assert.equal(await ask(), 200)
    assert.equal(used(line), 'Bearer key-4')
    await writeFile(next, 'key-5')
    good.add('key-5')
    await until(() => served.logged.some(({ message }) => message === 'config reloaded'), 'the reload')
    assert.equal(await ask(), 200)
    assert.equal(used(line), 'Bearer key-5')
  })
})

describe('a changed config that names a file which is not there yet', () => {
  it('is taken over when the file comes', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'awaited-'))
    t.after(() => rm(folder, { recursive: true }))
    const [file, secret] = ['gateway.json', 'key'].map((name) => join(folder, name)) as [string, string]
    const config = (apiKey?: string) => ({
      models: [{ id: 'chat', kind: 'chat' }],
      lines: [
        {
          ...{ id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'http://127.0.0.1:9/v1' },
          models: { chat: 'u' },
          apiKey,
        },
      ],
    })
    await writeFile(file, JSON.stringify(config()))
    const logger = recordingLogger()
    const applied: (string | undefined)[] = []
    let reads = 0
    const reload = new ConfigReload({
      files: [file],
      started: loadConfig(config()),
      logger,
      read: async () => {
        reads++
        return (await readConfigFile(file, '--config')).value
      },
      load: async (source) => loadConfig(source),
      apply: async ({ catalog }) => void applied.push(catalog.lines[0]?.apiKey),
    })
    await writeFile(file, JSON.stringify(config(`file:${secret}`)))
    reload.watch()
    t.after(() => reload.close())
    reload.ifChanged()
    await until(() => reads === 1 && logger.lines.length > 0, 'the config')
    assert.deepEqual(
      logger.lines.map(({ level }) => level),
      ['error'],
    )
    await writeFile(secret, 'key-1')
    await until(() => applied.length === 1, 'the reload')
    await writeFile(secret, 'key-2')
    await until(() => applied.length === 2, 'the next one')
    assert.deepEqual(applied, ['key-1', 'key-2'])
  })

  it('is followed to each of these files, and to no text that may be the secret itself', () => {
    const filesOf = (tls: object) => {
      const line = { id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'https://a.test', models: {}, tls }
      try {
        loadConfig({ models: [], lines: [line] })
      } catch (error) {
        return [...(error as ConfigError).secretFiles]
      }
      return undefined
    }
    const [cert, key] = ['/nowhere/tls.crt', '/nowhere/tls.key']
    assert.deepEqual(filesOf({ cert, key }), [cert, key])
    assert.deepEqual(filesOf({ cert, key: `file:${key}` }), [cert, key])
    assert.deepEqual(filesOf({ cert, key: './tls.key' }), [cert, './tls.key'])
    assert.deepEqual(filesOf({ cert, key: 'MIGHAgEAMBMGByqGSM49AgEGCCqGSM49/AwEHBG0wawIBAQQg' }), [cert])
  })
})

describe('a setting that names a file', () => {
  const faultsOf = (env: NodeJS.ProcessEnv) => {
    try {
      readSettings(env)
      return []
    } catch (error) {
      return (error as ConfigError).faults
    }
  }

  it('which is not there is a fault of the variable', () => {
    const names = ['DATABASE_URL', 'REDIS_URL', 'ADMIN_TOKEN', 'OIDC_CLIENT_SECRET']
    const file = 'file:/nowhere/at-all'
    const faults = faultsOf(Object.fromEntries(names.map((name) => [name, file])))
    for (const name of names)
      assert.ok(
        faults.includes(`${name}: the file /nowhere/at-all cannot be read (ENOENT)`),
        `${name}: ${faults.join()}`,
      )
  })

  it('with anything that is no such setting is a fault, which does not show what the file contains', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'settings-'))
    t.after(() => rm(folder, { recursive: true }))
    const file = join(folder, 'secret')
    for (const text of ['hush', 'tok\u00e9n-of-16-characters', 'a-token-of-16-characters hush']) {
      await writeFile(file, text)
      for (const name of ['DATABASE_URL', 'REDIS_URL', 'ADMIN_TOKEN']) {
        const faults = faultsOf({ [name]: `file:${file}` })
        assert.equal(faults.length, 1, name)
        assert.match(faults[0] as string, new RegExp(`^${name}: `))
        assert.doesNotMatch(faults[0] as string, /hush|tok\u00e9n|a-token/)
      }
    }
  })
})

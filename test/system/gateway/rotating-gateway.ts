import assert from 'node:assert/strict'
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'undici'
import { jsonOf } from '../../support/answer-bodies.ts'
import type { CleanUp } from '../../support/clean-up.ts'
import {
  GATEWAY_COMMAND,
  type GatewayProcess,
  startProgram,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import { answerJson, chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'
import { until, untilAsync } from '../../support/until.ts'
import { startVideoUpstream } from '../../support/video-upstream.ts'

export const ROOT_TOKEN = 'admin-token-of-the-tests'
export const SIGNING = ['the signing secret before', 'the signing secret now'] as const
/** Connections at once, each of which stays with one of the two workers. */
export const CONNECTIONS = 10

/** Puts a new file into the place of another, as editors do. */
export async function replace(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text)
  await rename(`${path}.new`, path)
}

/** Writes the files of a Kubernetes volume: all links lead through `..data`, which is switched at once. */
async function mount(volume: string, version: string, name: string, text: string): Promise<void> {
  const data = join(volume, `..${version}`)
  await mkdir(join(data, name, '..'), { recursive: true })
  await writeFile(join(data, name), text)
  const [top = ''] = name.split('/')
  await rm(join(volume, top), { force: true })
  await symlink(join('..data', top), join(volume, top))
  await symlink(`..${version}`, join(volume, '..data_tmp'))
  await rename(join(volume, '..data_tmp'), join(volume, '..data'))
}

interface Place {
  /** The key of the provider, as the config has it. */
  readonly setting: (folder: string) => string
  /** Puts a key there. */
  put(folder: string, key: string): Promise<void>
}

/** Where the keys of the provider are, by the model that uses them. */
const PLACES = {
  'env-file': {
    setting: () => 'env:PROVIDER_KEY',
    put: (folder, key) => replace(join(folder, '.env'), `PROVIDER_KEY=${key}\n`),
  },
  'replaced-file': {
    setting: (folder) => `file:${join(folder, 'key')}`,
    put: (folder, key) => replace(join(folder, 'key'), `${key}\n`),
  },
  'file-of-a-volume': {
    setting: (folder) => `file:${join(folder, 'volume/key')}`,
    put: (folder, key) => mount(join(folder, 'volume'), key, 'key', key),
  },
  'file-in-a-folder-of-a-volume': {
    setting: (folder) => `file:${join(folder, 'deep/keys/key')}`,
    put: (folder, key) => mount(join(folder, 'deep'), key, 'keys/key', key),
  },
} as const satisfies Record<string, Place>
export const PLACE_NAMES = Object.keys(PLACES) as (keyof typeof PLACES)[]

/** Starts two workers whose secrets are all somewhere else, with a caller's key, a video and the provider's keys. */
export async function startRotatingGateway(t: CleanUp) {
  const { path: folder, remove } = await temporaryFolder()
  t.after(remove)
  const at = (name: string) => join(folder, name)
  /** The provider's keys that the upstream takes. */
  const good = new Set(PLACE_NAMES.map((place) => `Bearer first-of-${place}`))
  const upstream = await startUpstream((res, { headers }) =>
    good.has(String(headers.authorization)) ? chatAnswer(res) : answerJson(res, 401, {}),
  )
  t.after(() => upstream.close())
  const video = await startVideoUpstream()
  t.after(() => video.close())
  for (const volume of ['volume', 'deep']) await mkdir(at(volume))
  for (const place of PLACE_NAMES) await PLACES[place].put(folder, `first-of-${place}`)
  await writeFile(at('database'), `sqlite:${at('gateway.db')}\n`)
  await writeFile(at('admin-token'), ROOT_TOKEN)
  await writeFile(at('caller'), 'sk-of-a-file-1')
  const line = { provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1` }
  const config = {
    accounts: [{ id: 'demo' }],
    keys: [
      { id: 'key', account: 'demo', secret: 'sk-demo' },
      { id: 'filed', account: 'demo', secret: `file:${at('caller')}` },
    ],
    models: [...PLACE_NAMES.map((id) => ({ id, kind: 'chat' })), { id: 'clip', kind: 'video' }],
    lines: [
      ...PLACE_NAMES.map((id) => ({
        ...line,
        id,
        apiKey: PLACES[id].setting(folder),
        models: { [id]: 'u' },
      })),
      { ...line, id: 'video', baseUrl: `${video.url}/v1`, models: { clip: 'u' } },
    ],
    urlSigningSecret: SIGNING[0],
  }
  await writeFile(at('gateway.json'), JSON.stringify(config))
  const gateway = await startProgram([...GATEWAY_COMMAND, '--config', at('gateway.json')], folder, {
    DATABASE_URL: `file:${at('database')}`,
    ADMIN_TOKEN: `file:${at('admin-token')}`,
    WORKERS: '2',
  })
  t.after(() => gateway.stop())
  const times = (message: string) => gateway.stdout.split(`"msg":"${message}"`).length - 1

  return {
    gateway,
    upstream,
    video,
    good,
    at,
    times,
    putKey: (place: keyof typeof PLACES, key: string) => PLACES[place].put(folder, key),
    /** Writes another config, and waits for it. */
    async use(members: object): Promise<void> {
      const count = times('config reloaded')
      await replace(at('gateway.json'), JSON.stringify({ ...config, ...members }))
      await until(() => times('config reloaded') > count, 'the reload')
    },
    async ask<T>(method: string, path: string, body?: object, token = ROOT_TOKEN): Promise<T> {
      const answer = await fetch(gateway.url + path, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      })
      assert.ok(answer.ok, `${method} ${path}: ${answer.status}`)
      return jsonOf<T>(answer)
    },
    /** The answers to a token, or a key, on connections of both workers. */
    statusesOf: (path: string, token: string) => statusesOf(gateway, path, token),
    /** Waits until no worker takes a token, or a key, any more. */
    untilRefused: (path: string, token: string) =>
      untilAsync(
        async () => (await statusesOf(gateway, path, token)).every((status) => status === 401),
        `the end of a secret for ${path}`,
      ),
    steadyReads: (by: CleanUp, read: Read) => steadyReads(by, gateway, read),
  }
}

export type RotatingGateway = Awaited<ReturnType<typeof startRotatingGateway>>

/** A request that is repeated again and again; the token may change meanwhile. */
interface Read {
  readonly path: string
  token: string
}

async function get({ url }: GatewayProcess, path: string, token: string, kept?: Client) {
  const client = kept ?? new Client(url)
  const headers = { authorization: `Bearer ${token}` }
  const { statusCode, body } = await client.request({ method: 'GET', path, headers })
  const text = await body.text()
  if (!kept) await client.destroy()
  return { status: statusCode, text }
}

function statusesOf(gateway: GatewayProcess, path: string, token: string): Promise<number[]> {
  return Promise.all(
    Array.from({ length: CONNECTIONS }, async () => (await get(gateway, path, token)).status),
  )
}

function steadyReads(t: CleanUp, gateway: GatewayProcess, read: Read) {
  const failures: string[] = []
  let answered = 0
  let stopped = false
  const running = Array.from({ length: CONNECTIONS }, async () => {
    const client = new Client(gateway.url)
    while (!stopped) {
      const { status, text } = await get(gateway, read.path, read.token, client)
      if (status === 200) answered++
      else failures.push(`${status} ${text}`)
      await sleep(Math.random() * 20)
    }
    await client.destroy()
  })
  const stop = async (): Promise<void> => {
    stopped = true
    await Promise.all(running)
  }
  t.after(stop)
  return {
    failures,
    stop,
    /** Resolves when so many more are answered, or one is not. */
    more: (count: number): Promise<void> => {
      const goal = answered + count
      return until(() => answered >= goal || failures.length > 0, 'reads')
    },
  }
}

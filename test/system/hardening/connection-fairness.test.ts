import assert from 'node:assert/strict'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { cleaningUp } from '../../support/clean-up.ts'
import { chat, type Environment, temporaryFolder } from '../../support/gateway-process.ts'
import { until } from '../../support/until.ts'
import { guardedGateway, KEY, OTHER_KEY } from './guarded-gateway.ts'

/** They leave 86 connections to callers. */
const DESCRIPTORS = 300
const ATTACKERS = 350
const ATTACK_MS = 1500
const POOR_KEY = 'sk-poor-0123456789'
const EVIL_KEY = 'sk-evil-0123456789'
/** Many keys of one account. */
const MANY_KEYS = Array.from({ length: ATTACKERS }, (_, i) => `sk-many-${i}-0123456789`)
const MESSAGES = JSON.stringify(chat('chat'))

const upload = (key: string, length: string): string =>
  `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n${length}\r\n\r\n`

/** An attacker's first bytes, and its behaviour after them. */
interface Attack {
  readonly says: string | readonly string[]
  readonly drops?: string
  readonly reads?: boolean
  readonly ends?: boolean
}

const stream = JSON.stringify({ ...chat('chat', 'flood'), stream: true })

const ATTACKS: Readonly<Record<string, Attack>> = {
  'uploads of one byte each, with one key that has no balance': {
    says: `${upload(POOR_KEY, 'content-length: 1000')}{`,
  },
  'large uploads of one byte each, with one key that has no balance': {
    says: `${upload(POOR_KEY, 'content-length: 1000000')}{`,
  },
  'uploads of one byte each, with a key of the same account for each': {
    says: MANY_KEYS.map((key) => `${upload(key, 'content-length: 1000')}{`),
  },
  'chunked bodies in drops': {
    says: `${upload(EVIL_KEY, 'transfer-encoding: chunked')}1\r\n{\r\n`,
    drops: '1\r\n \r\n',
  },
  'pipelined requests without a key, whose answers are never read': {
    says: 'GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(20),
    reads: false,
  },
  'slow heads': { says: 'GET /v1/models HTTP/1.1\r\nx-slow: ', drops: 'x' },
  'idle connections that have asked once': {
    says: `GET /v1/account HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${EVIL_KEY}\r\n\r\n`,
  },
  'connections that say nothing': { says: '' },
  'streams that are not read': {
    says: upload(EVIL_KEY, `content-length: ${stream.length}`) + stream,
    reads: false,
  },
  'connections that are closed by their callers only, in the middle of a request': {
    says: 'GET /healthz HTTP/1.1\r\nhost: x\r\n\r\nGET /heal',
    ends: true,
  },
}

/** Opens connections from one address, again whenever one is closed. Returns what ends them. */
function attack(port: number, { says, drops, reads = true, ends = false }: Attack): () => void {
  const open = new Set<Socket>()
  let isOver = false
  const begin = (said: string): void => {
    if (isOver) return
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {})
    open.add(socket)
    if (ends) socket.end(said)
    else socket.write(said)
    if (reads) socket.resume()
    const timer = drops === undefined ? undefined : setInterval(() => socket.write(drops), 200)
    socket.on('close', () => {
      clearInterval(timer)
      open.delete(socket)
      setTimeout(begin, 50, said)
    })
  }
  for (let i = 0; i < ATTACKERS; i++) begin(typeof says === 'string' ? says : (says[i % says.length] ?? ''))
  return () => {
    isOver = true
    for (const socket of open) socket.destroy()
  }
}

/** Asks over a connection of its own, and returns whether the answer was whole, or the error. */
function ask(port: number, key: string, localAddress: string): Promise<string> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const asked = request(
      { host: '127.0.0.1', port, path: '/v1/chat/completions', method: 'POST', headers, localAddress },
      async (answer) => {
        const text = (await answer.toArray()).join('')
        resolve(answer.statusCode === 200 ? 'whole' : text)
      },
    )
    asked.setTimeout(10_000, () => asked.destroy(new Error('no answer within 10 s')))
    asked.on('error', (error) => resolve(`${error}`)).end(MESSAGES)
  })
}

async function fairGateway(env: Environment = {}) {
  return guardedGateway(
    env,
    (res, { json }) => {
      if (json.messages[0]?.content !== 'flood') {
        res.setHeader('content-type', 'application/json')
        res.end(
          JSON.stringify({
            ...{ id: 'c', object: 'chat.completion', created: 1, model: 'u' },
            choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
            usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
          }),
        )
        return
      }
      res.setHeader('content-type', 'text/event-stream')
      const delta = { index: 0, delta: { content: 'x'.repeat(16_000) }, finish_reason: null }
      const event = `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'u', choices: [delta] })}\n\n`
      const timer = setInterval(() => res.writableNeedDrain || res.write(event), 200)
      res.on('close', () => clearInterval(timer))
    },
    () => ({
      accounts: [
        { id: 'acme' },
        { id: 'globex' },
        { id: 'poor', balance: '0' },
        { id: 'evil' },
        { id: 'many' },
      ],
      keys: [
        { id: 'key_acme', account: 'acme', secret: KEY },
        { id: 'key_globex', account: 'globex', secret: OTHER_KEY },
        { id: 'key_poor', account: 'poor', secret: POOR_KEY },
        { id: 'key_evil', account: 'evil', secret: EVIL_KEY },
        ...MANY_KEYS.map((secret, i) => ({ id: `key_many_${i}`, account: 'many', secret })),
      ],
    }),
    ['sh', '-c', `ulimit -n ${DESCRIPTORS}; exec "$@"`, 'sh'],
  )
}

type Fair = Awaited<ReturnType<typeof fairGateway>>

/** Asks, beside an attack, with a key from another address, and with one from the address of the attack. */
async function askBeside({ gateway, upstream }: Fair, attacked: Attack, t: TestContext): Promise<void> {
  const stop = attack(gateway.port, attacked)
  t.after(stop)
  const over = performance.now() + ATTACK_MS
  const answers: Record<string, number> = {}
  const tenant = async (key: string, address: string): Promise<void> => {
    while (performance.now() < over) {
      const answer = await ask(gateway.port, key, address)
      answers[answer] = (answers[answer] ?? 0) + 1
      await sleep(20)
    }
  }
  await Promise.all([
    tenant(KEY, '127.0.0.2'),
    tenant(KEY, '127.0.0.2'),
    tenant(OTHER_KEY, '127.0.0.1'),
    tenant(OTHER_KEY, '127.0.0.1'),
  ])
  stop()
  assert.deepEqual(Object.keys(answers), ['whole'], JSON.stringify(answers))
  await until(
    () => upstream.requests.every(({ cut, json }) => cut || json.stream !== true),
    'upstreams are left',
  )
}

describe('callers beside others who take all connections', async () => {
  const fair = await fairGateway()

  for (const [what, attacked] of Object.entries(ATTACKS))
    it(`are served in time, without a reset, beside ${what}`, (t) => askBeside(fair, attacked, t))
})

describe('callers beside others who take all connections of several processes', async () => {
  const cleanUp = cleaningUp()
  const folder = await temporaryFolder()
  cleanUp.after(() => folder.remove())
  const fair = await fairGateway({ WORKERS: '2', DATABASE_URL: `sqlite:${join(folder.path, 'g.db')}` })

  for (const [what, attacked] of Object.entries(ATTACKS).filter(([, { drops }]) => drops === undefined))
    it(`are served in time, without a reset, beside ${what}`, (t) => askBeside(fair, attacked, t))
})

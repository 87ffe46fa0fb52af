import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { RequestHandler } from 'express'
import type { GatewayConfig } from 'express-model-gateway/gateway'
import { importOpenings } from '../../examples/gateway/openings.ts'
import {
  type Call,
  ConfigError,
  callOf,
  loadConfig,
  MemoryCallStore,
  memoryKeyDirectory,
} from '../../lib/index.ts'
import { blocksOf, ROOT } from '../docs/pages.ts'
import { createGateway } from '../support/any-config.ts'
import { assembledGateway } from '../support/assembled-gateway.ts'
import { GATEWAY_COMMAND, lookUp, startProgram } from '../support/gateway-process.ts'
import { startUpstream } from '../support/scripted-upstream.ts'
import { until } from '../support/until.ts'

const BODY = { model: 'chat', messages: [{ role: 'user', content: 'Hello!' }] }

/** Two lines, the first of which is tried first by the config's strategy. */
function configOver(url: string) {
  const line = { provider: 'p', protocol: 'openai', baseUrl: `${url}/v1`, models: { chat: 'u' } }
  return {
    models: [{ id: 'chat', kind: 'chat', price: { perRequest: '1' } }],
    lines: [
      { ...line, id: 'first' },
      { ...line, id: 'second', priority: 1 },
    ],
  }
}

describe('the assembled gateway takes middlewares of an app', () => {
  it('and runs them in the documented places', async (t) => {
    const upstream = await startUpstream()
    t.after(() => upstream.close())
    const seen: unknown[] = []
    const note =
      (place: string): RequestHandler =>
      (req, _res, next) => {
        const { principal, request, limits, billing } = callOf(req)
        seen.push([place, principal?.accountId, request?.model.id, limits ?? billing])
        next()
      }
    const ended: Call[] = []
    const { send } = await assembledGateway(t, configOver(upstream.url), {
      use: {
        first: note('first'),
        authenticated: [note('authenticated'), note('again')],
        read: note('read'),
        answered: (call) => ended.push(call),
      },
    })
    const response = await send('/v1/chat/completions', BODY)
    assert.equal(response.status, 200)
    await response.arrayBuffer()
    assert.deepEqual(seen, [
      ['first', undefined, undefined, null],
      ['authenticated', 'acme', undefined, null],
      ['again', 'acme', undefined, null],
      ['read', 'acme', 'chat', null],
    ])
    await until(() => ended.length === 1, 'the call has ended')
    const [call] = ended
    assert.equal(call?.id, response.headers.get('x-request-id'))
    assert.deepEqual(call?.outcome, { status: 200, errorCode: null, finish: 'completed' })
    assert.equal(call?.billing?.charged, 1_000_000_000n)
  })

  it('and what one refuses reaches no line, and costs nothing', async (t) => {
    const upstream = await startUpstream()
    t.after(() => upstream.close())
    const { send, entryOf } = await assembledGateway(t, configOver(upstream.url), {
      use: { read: (req, _res, next) => next(callOf(req).refuse('content_filtered')) },
    })
    const response = await send('/v1/chat/completions', BODY)
    assert.equal(response.status, 400)
    assert.equal(((await response.json()) as { error: { code: string } }).error.code, 'content_filtered')
    assert.equal(upstream.requests.length, 0)
    const entry = await entryOf(response)
    assert.equal(entry.error_code, 'content_filtered')
    assert.equal(entry.billing, null)
  })

  it('and a hook that throws, rejects or never settles costs its call nothing but a line of the log', async (t) => {
    const upstream = await startUpstream()
    t.after(() => upstream.close())
    const { send, logged, entryOf } = await assembledGateway(t, configOver(upstream.url), {
      use: {
        answered: [
          () => {
            throw new Error('thrown')
          },
          () => Promise.reject(new Error('rejected')),
          () => new Promise(() => {}),
        ],
      },
    })
    const response = await send('/v1/chat/completions', BODY)
    assert.equal(response.status, 200)
    await response.arrayBuffer()
    assert.equal((await entryOf(response)).outcome, 'completed')
    const failures = (): string[] =>
      logged
        .filter(
          ({ fields }) =>
            (fields as { requestId?: string }).requestId === response.headers.get('x-request-id'),
        )
        .filter(({ message }) => message.includes('"answered"'))
        .map(({ fields }) => (fields as { err: Error }).err.message)
    await until(() => failures().length >= 2, 'both failures are in the log')
    assert.deepEqual(failures(), ['thrown', 'rejected'])
  })

  it('and a strategy orders the lines in place of that of the config', async (t) => {
    const upstream = await startUpstream()
    t.after(() => upstream.close())
    const { send, entryOf } = await assembledGateway(t, configOver(upstream.url), {
      strategy: (candidates) => candidates.toReversed(),
    })
    const response = await send('/v1/chat/completions', BODY)
    await response.arrayBuffer()
    assert.deepEqual(
      (await entryOf(response)).routing?.attempts.map(({ line }) => line),
      ['second'],
    )
  })

  it('and a directory of keys admits the callers of the app only', async (t) => {
    const upstream = await startUpstream()
    t.after(() => upstream.close())
    const keys = memoryKeyDirectory(
      loadConfig({
        ...(configOver(upstream.url) as GatewayConfig),
        accounts: [{ id: 'acme' }],
        keys: [{ id: 'mine', account: 'acme', secret: 'sk-of-my-app' }],
      }),
    )
    const { send } = await assembledGateway(t, configOver(upstream.url), { keys })
    assert.equal((await send('/v1/chat/completions', BODY)).status, 401)
    const authorization = 'Bearer sk-of-my-app'
    const response = await send('/v1/models', undefined, { headers: { authorization } })
    assert.equal(response.status, 200)
  })

  it('and a store of the app takes the entries of the call log', async (t) => {
    const upstream = await startUpstream()
    t.after(() => upstream.close())
    const calls = new MemoryCallStore()
    const { send, entryOf } = await assembledGateway(t, configOver(upstream.url), { stores: { calls } })
    const response = await send('/v1/chat/completions', BODY)
    await response.arrayBuffer()
    const entry = await entryOf(response)
    assert.equal(entry.billing?.charged, '1')
    assert.equal((await calls.find(entry.id))?.id, entry.id)
  })

  const WRONG: readonly [options: object, fault: string][] = [
    [{ use: { red: () => {} } }, 'use'],
    [{ use: { read: 'all' } }, 'use.read must be a middleware, or a list of them'],
    [{ use: { answered: [1] } }, 'use.answered must be'],
    [{ strategy: 'price' }, 'strategy must be a function'],
    [{ keys: {} }, 'keys must have "find"'],
    [{ stores: { limit: {} } }, 'stores'],
  ]
  for (const [options, fault] of WRONG)
    it(`and names a mistake in ${JSON.stringify(options)}`, async () => {
      await assert.rejects(
        createGateway(configOver('http://127.0.0.1:1'), { databaseUrl: 'memory:', env: {}, ...options }),
        (error) => error instanceof ConfigError && error.message.includes(fault),
      )
    })
})

describe('the page about a guardrail of your own', () => {
  const block = blocksOf(['docs/your-own-guardrail.md']).find(({ language }) => language === 'js')

  it('shows a module that refuses what it says, and lets all else pass', async (t) => {
    assert.ok(block)
    await mkdir(join(ROOT, '.data'), { recursive: true })
    const folder = await mkdtemp(join(ROOT, '.data/use-'))
    t.after(() => rm(folder, { recursive: true }))
    const file = join(folder, 'my-middlewares.mjs')
    await writeFile(file, block.code)
    const gateway = await startProgram([...GATEWAY_COMMAND, '--use', file], ROOT)
    t.after(() => gateway.stop())
    const ask = (content: string): Promise<Response> =>
      fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: 'Bearer sk-demo', 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'chat-small', messages: [{ role: 'user', content }] }),
      })
    assert.equal((await ask('Tell me a story.')).status, 200)
    const refused = await ask('Summarize Project Nightingale.')
    assert.equal(refused.status, 400)
    const { error } = (await refused.json()) as { error: { code: string; message: string } }
    assert.deepEqual([error.code, error.message], ['content_filtered', 'This project is confidential.'])
    const entry = await lookUp(gateway.url, refused.headers.get('x-request-id'))
    assert.equal(entry.error_code, 'content_filtered')
    assert.equal(JSON.stringify(entry).includes('Nightingale'), false)
  })

  it('and an export that has no place, or a file that is none, is named', async (t) => {
    const folder = await mkdtemp(join(ROOT, '.data/use-'))
    t.after(() => rm(folder, { recursive: true }))
    const file = join(folder, 'mine.mjs')
    await writeFile(file, 'export const raed = () => {}')
    await assert.rejects(
      importOpenings(file),
      /exports "raed"; it can export first, authenticated, read, answered/,
    )
    await assert.rejects(importOpenings(join(folder, 'none.mjs')), /cannot be imported/)
  })
})

it('a config with a member that does not exist does not compile', async () => {
  const line = {
    id: 'l',
    provider: 'p',
    protocol: 'openai' as const,
    baseUrl: 'http://127.0.0.1:1/v1',
    models: { chat: 'u' },
  }
  const config: GatewayConfig = { models: [{ id: 'chat', kind: 'chat' }], lines: [line] }
  assert.equal(loadConfig(config).catalog.models.size, 1)
  // @ts-expect-error: the types must know the members, or this line is a fault of the type check.
  const misspelt: GatewayConfig = { modles: [], lines: [line] }
  assert.throws(() => loadConfig(misspelt), /modles: is not a known member/)
  // @ts-expect-error: so must the kinds of models.
  const odd: GatewayConfig = { models: [{ id: 'chat', kind: 'chatty' }], lines: [line] }
  assert.throws(() => loadConfig(odd), /models\[0\]\.kind/)
})

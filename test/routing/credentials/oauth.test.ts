import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { LineAccess } from '../../../lib/middleware/route/index.ts'
import { clockOf } from '../../support/clock.ts'
import {
  ANTHROPIC,
  exchange,
  gatewayFor,
  MODES,
  type Mode,
  modeName,
  OPENAI,
} from '../../support/exchange.ts'
import type { TestGateway } from '../../support/gateway.ts'
import {
  answerJson,
  chatAnswer,
  chatEvents,
  closedPort,
  messageAnswer,
  messageEvents,
  type ScriptedUpstream,
  startUpstream,
  stream,
} from '../../support/scripted-upstream.ts'
import { startTokenServer, type TokenServer } from '../../support/token-server.ts'
import { until } from '../../support/until.ts'

const SECRET = 'client-secret-0123'

interface World {
  readonly gateway: TestGateway
  readonly upstream: ScriptedUpstream
  readonly tokens: TokenServer
}

/** A gateway over a line whose tokens come from a token endpoint, and a line with a key of its own behind it. */
async function world(
  t: TestContext,
  { protocol = 'openai', oauth = {}, line = {}, spare = false }: WorldOptions = {},
): Promise<World> {
  const tokens = await startTokenServer()
  t.after(() => tokens.close())
  const upstream = await startUpstream((res, { headers, json }) => {
    const token = String(headers.authorization).slice('Bearer '.length)
    if (!tokens.good.has(token) && token !== 'spare-key')
      return answerJson(res, 401, { error: { message: 'Unauthorized', code: '401' } })
    if (protocol === 'openai') return json.stream ? stream(res, chatEvents(['Hello'])) : chatAnswer(res)
    return json.stream ? stream(res, messageEvents(['Hello'])) : messageAnswer(res)
  })
  t.after(() => upstream.close())
  const apiKey = {
    oauth: {
      tokenUrl: tokens.url,
      clientId: 'client-1',
      clientSecret: SECRET,
      scope: 'a/.default',
      ...oauth,
    },
  }
  const gateway = await gatewayFor(t, {
    lines: [
      { url: upstream.url, protocol, apiKey, circuit: { minimumCalls: 1000 }, ...line },
      ...(spare ? [{ url: upstream.url, protocol, apiKey: 'spare-key' }] : []),
    ],
  })
  return { gateway, upstream, tokens }
}

interface WorldOptions {
  readonly protocol?: 'openai' | 'anthropic'
  readonly oauth?: object
  readonly line?: object
  readonly spare?: boolean
}

const used = ({ upstream }: World): (string | undefined)[] =>
  upstream.requests.map(({ headers }) => headers.authorization)

async function traceOf(gateway: TestGateway, requestId: string) {
  return (await gateway.entry(requestId)).routing?.attempts
}

describe('a line with client credentials', () => {
  for (const mode of MODES)
    it(`is sent a token that was requested once: ${modeName(mode)}`, async (t) => {
      const at = await world(t, { protocol: mode.protocol })
      const answers = await Promise.all([1, 2, 3].map(() => exchange(at.gateway, mode)))
      answers.push(await exchange(at.gateway, mode))
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200, 200, 200],
      )
      assert.ok(answers.every(({ text }) => text.includes('Hello')))
      assert.deepEqual(used(at), Array(4).fill('Bearer token-1'))
      assert.deepEqual(at.upstream.requests[0]?.headers['x-api-key'], undefined)
      assert.deepEqual(at.tokens.forms.map(Object.fromEntries), [
        {
          grant_type: 'client_credentials',
          client_id: 'client-1',
          client_secret: SECRET,
          scope: 'a/.default',
        },
      ])
    })

  it('renews the token before its end in the background, and no call waits', async (t) => {
    const at = await world(t)
    const clock = clockOf(t)
    await exchange(at.gateway)
    clock.pass(3_200_000)
    assert.equal((await exchange(at.gateway)).status, 200)
    assert.equal(at.tokens.forms.length, 1)
    clock.pass(150_000)
    at.tokens.script = () => {}
    for (let i = 0; i < 3; i++) assert.equal((await exchange(at.gateway)).status, 200)
    assert.deepEqual(used(at), Array(5).fill('Bearer token-1'))
    await until(() => at.tokens.forms.length === 2, 'the renewal')
    clock.pass(20_000)
    at.tokens.script = undefined
    assert.equal((await exchange(at.gateway)).status, 200)
  })

  it('requests one new token after a 401, and the refused calls continue with it', async (t) => {
    for (const mode of MODES) {
      const at = await world(t, { protocol: mode.protocol })
      await exchange(at.gateway, mode)
      at.tokens.good.clear()
      const answers = await Promise.all([1, 2, 3, 4].map(() => exchange(at.gateway, mode)))
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200, 200, 200],
      )
      assert.equal(at.tokens.forms.length, 2)
      assert.equal(new Set(used(at)).size, 2)
    }
  })

  it('fails as after any 401 if the new token is refused as well', async (t) => {
    const at = await world(t, { spare: true })
    at.tokens.script = (res) => answerJson(res, 200, { access_token: 'bad', expires_in: 60 })
    const answer = await exchange(at.gateway)
    assert.equal(answer.status, 200)
    assert.deepEqual(used(at), ['Bearer bad', 'Bearer bad', 'Bearer spare-key'])
    assert.equal(at.tokens.forms.length, 2)
    const [attempt] = (await traceOf(at.gateway, answer.requestId)) ?? []
    assert.deepEqual([attempt?.outcome, attempt?.upstream_status], ['upstream_error', 401])
  })

  it('requests tokens for tasks and files as well', async (t) => {
    const at = await world(t)
    const [line] = at.gateway.config.catalog.lines
    assert.ok(line)
    const access = new LineAccess({ catalog: at.gateway.config.catalog, lines: at.gateway.lines })
    const send = access.senderTo(line)
    for (const method of ['GET', 'POST', 'DELETE'] as const) {
      at.tokens.good.clear()
      const result = await send({ method, path: '/videos' }, new AbortController().signal)
      assert.equal(result.kind, 'answered')
    }
  })
})

describe('a token endpoint that gives no token', () => {
  const BAD = 'must-not-show-0123'
  const rows: [what: string, script: TokenServer['script'], detail: RegExp][] = [
    [
      'refuses',
      (res) => answerJson(res, 401, { error: 'invalid_client', error_description: `${BAD} ${SECRET}` }),
      /^the token endpoint answered 401 \(invalid_client\)$/,
    ],
    ['fails', (res) => answerJson(res, 503, { error: BAD.repeat(9) }), /^the token endpoint answered 503$/],
    ['redirects', (res) => res.writeHead(302, { location: '/' }).end(), /^the token endpoint answered 302$/],
    ['answers nothing', (res) => res.writeHead(200).end(), /holds no token$/],
    ['answers no JSON', (res) => res.writeHead(200).end(`<p>${BAD}`), /holds no token$/],
    ['answers another type', (res) => answerJson(res, 200, { access_token: 7 }), /holds no token$/],
    ['answers two lines', (res) => answerJson(res, 200, { access_token: 'a\r\nx: y' }), /holds no token$/],
    ['answers too much', (res) => answerJson(res, 200, { access_token: 'x'.repeat(99_999) }), /too long$/],
    ['breaks off', (res) => res.destroy(), /^the token endpoint cannot be reached( \(\w+\))?$/],
  ]
  for (const [what, script, detail] of rows)
    it(`and ${what}, costs the line its attempt: ${detail}`, async (t) => {
      const at = await world(t, { spare: true })
      at.tokens.script = script
      const answer = await exchange(at.gateway)
      assert.equal(answer.status, 200)
      assert.deepEqual(used(at), ['Bearer spare-key'])
      const [first] = (await traceOf(at.gateway, answer.requestId)) ?? []
      assert.equal(first?.outcome, 'upstream_error')
      assert.match(first?.detail ?? '', detail)
      assert.doesNotMatch(JSON.stringify([first, at.gateway.logged]), /must-not-show|client-secret/)
    })

  it('because it is down opens the circuit of the line, as a refused key does', async (t) => {
    const port = await closedPort()
    const oauth = { tokenUrl: `http://127.0.0.1:${port}/` }
    const at = await world(t, { oauth, line: { circuit: { minimumCalls: 2, resetMs: 60_000 } } })
    const codes = [1, 2, 3].map(() => undefined as string | undefined)
    for (const i of codes.keys()) codes[i] = (await exchange(at.gateway)).errorCode
    assert.deepEqual(codes, ['upstream_error', 'upstream_error', 'circuit_open'])
  })

  it('because it does not answer costs the line its connect timeout, and other lines nothing', async (t) => {
    const at = await world(t, { spare: true, line: { timeouts: { connectMs: 300 } } })
    at.tokens.script = () => {}
    const began = performance.now()
    const answers = await Promise.all([1, 2, 3].map(() => exchange(at.gateway)))
    const tookMs = performance.now() - began
    assert.ok(tookMs >= 200 && tookMs < 5000, `${tookMs} ms`)
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200],
    )
    assert.equal(at.tokens.forms.length, 1)
    const [first] = (await traceOf(at.gateway, answers[0]?.requestId ?? '')) ?? []
    assert.deepEqual(
      [first?.outcome, first?.timeout_phase, first?.detail],
      ['upstream_timeout', 'connect', 'the credential of the line took too long'],
    )
  })

  it('in time provides the token to later calls', async (t) => {
    const at = await world(t, { line: { timeouts: { connectMs: 200 } } })
    let answer = (): void => {}
    at.tokens.script = (res) => {
      answer = () => {
        at.tokens.good.add('late')
        answerJson(res, 200, { access_token: 'late', expires_in: 60 })
      }
    }
    assert.equal((await exchange(at.gateway, OPENAI)).errorCode, 'upstream_timeout')
    answer()
    await until(() => at.tokens.good.has('late'), 'the late token')
    assert.equal((await exchange(at.gateway)).status, 200)
    assert.equal(at.tokens.forms.length, 1)
  })
})

describe('an anthropic line with client credentials', () => {
  it('is sent its version beside the token', async (t) => {
    const mode: Mode = ANTHROPIC
    const at = await world(t, { protocol: 'anthropic' })
    await exchange(at.gateway, mode, {}, { headers: { 'anthropic-version': '2023-01-01' } })
    assert.equal(at.upstream.requests[0]?.headers['anthropic-version'], '2023-01-01')
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chat, lookUp, post } from '../../support/gateway-process.ts'
import { until } from '../../support/until.ts'
import { guardedGateway, KEY } from './guarded-gateway.ts'

const { gateway, say } = await guardedGateway({ LOG_LEVEL: 'trace' })

/** Characters that a terminal takes for commands, or a reader for a line of its own. */
const EVIL = '\r\n{"level":30,"msg":"forged"}\u001b[2J\u0000\u007f\u009b2J\u2028\u2029\u202egnp\u200b'
/** As far as it can stand in a header: Node takes these bytes. */
const EVIL_BYTES = '\t\u009b2J\u0085\u00ad{"level":30,"msg":"forged"}'
/** None of that stands in a log, whose only control character ends its lines. */
const assertIsText = (log: string): void => {
  const [found] = /[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]--\n]/v.exec(log) ?? []
  assert.equal(found, undefined, `the log has the character ${found?.codePointAt(0)}`)
}

const headers = { authorization: `Bearer ${KEY}` }

/** The lines of the ready message, which are no log. */
const READY = /^(?:express-model-gateway is ready at http|Console: http|Sign in )/

/** Each line of the log is one object that this program has written, without anything that is not text. */
async function assertLogHolds(requestId: string): Promise<void> {
  await until(() => gateway.stdout.includes(requestId), 'the line of the call')
  assertIsText(gateway.stdout)
  const lines = gateway.stdout.split('\n').filter((line) => line !== '' && !READY.test(line))
  for (const line of lines) {
    const { msg } = JSON.parse(line) as { msg: unknown }
    assert.notEqual(msg, 'forged')
  }
  assert.equal(gateway.stderr, '')
}

describe('only the gateway writes into the log', () => {
  it('by the name of a model', async () => {
    const response = await post(gateway.url, chat(`chat${EVIL}`), headers)
    assert.equal(response.status, 404)
    const id = String(response.headers.get('x-request-id'))
    await assertLogHolds(id)
    const line = gateway.logged.find(({ requestId }) => requestId === id)
    assert.equal(line?.model, `chat${EVIL}`, 'what was asked for can still be read')
  })

  it('by a long name of a model: of it there is a beginning', async () => {
    const response = await post(gateway.url, chat(`long${'m'.repeat(1_000_000)}`), headers)
    const id = String(response.headers.get('x-request-id'))
    await assertLogHolds(id)
    const line = gateway.stdout.split('\n').find((each) => each.includes(id)) ?? ''
    assert.ok(line.length < 2000, `${line.length} characters of log`)
    const entry = JSON.stringify(await lookUp(gateway.url, id, KEY))
    assert.ok(entry.length < 5000, `${entry.length} characters in the call log`)
  })

  it('by other members of a body', async () => {
    const extra = { stream: EVIL, temperature: EVIL, [EVIL]: EVIL, provider: { only: [EVIL] } }
    const response = await post(gateway.url, chat('chat', EVIL, extra), headers)
    assert.equal(response.status, 400)
    await assertLogHolds(String(response.headers.get('x-request-id')))
  })

  it('by a provider constraint that removes every line, which the trace quotes', async () => {
    const response = await post(gateway.url, chat('chat', 'hi', { provider: { only: [EVIL] } }), headers)
    assert.equal(response.status, 503)
    await assertLogHolds(String(response.headers.get('x-request-id')))
  })

  for (const name of [
    'x-request-id',
    'user-agent',
    'idempotency-key',
    'x-gateway-provider',
    'x-forwarded-for',
    'authorization',
  ]) {
    it(`by ${name}`, async () => {
      const received = await say(
        `GET /v1/models/chat HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${name}: ${EVIL_BYTES}\r\n\r\n`,
      )
      const [, id = ''] = /^x-request-id: (\S+)\r$/im.exec(received) ?? []
      assert.match(id, /^req_[0-9a-z]{26}$/, 'the caller’s own is never the id')
      assert.doesNotMatch(received, /forged/)
      await assertLogHolds(id)
    })
  }

  it('by a path', async () => {
    const received = await say(
      `GET /v1/models/%0d%0a%1b\u009b2J\u0085%7b HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer ${KEY}\r\n\r\n`,
    )
    const [, id = ''] = /^x-request-id: (\S+)\r$/im.exec(received) ?? []
    if (id !== '') await assertLogHolds(id)
    else assert.match(received, /^HTTP\/1\.1 400 /, 'refused by the server itself')
  })

  it('by a method', async () => {
    const received = await say('GET\u001b[2J / HTTP/1.1\r\nhost: x\r\n\r\n')
    assert.match(received, /^HTTP\/1\.1 400 /)
    assertIsText(gateway.stdout)
  })
})

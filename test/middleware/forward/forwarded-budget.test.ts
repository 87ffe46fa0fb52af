import assert from 'node:assert/strict'
import { it } from 'node:test'
import { KeptThings } from '../../../lib/middleware/references/index.ts'
import { rawClient } from '../../support/app-server.ts'
import { forwardGateway, OTHER_KEY } from '../../support/forward-gateway.ts'
import { KEY } from '../../support/gateway.ts'
import { twoUpstreams } from '../../support/reference-rows.ts'
import { until } from '../../support/until.ts'

const LIMIT = 64 * 1024

it('JSON that is read before it is passed on has the budget of its key and of the process', async (t) => {
  const [one] = await twoUpstreams(t)
  const kept = new KeptThings()
  t.after(() => kept.close())
  const rules = [{ path: '/v1/odd/*rest', lines: ['line-0'] }]
  const bodies = { bodyLimitBytes: LIMIT, bodyBudgetBytes: 2.5 * LIMIT }
  const gateway = await forwardGateway(t, { lines: [one.url], rules, kept, bodies })
  const body = JSON.stringify({ filler: 'x'.repeat(LIMIT - 13) })
  assert.equal(body.length, LIMIT)
  /** Sends all of a body but its last bytes. */
  const upload = (secret: string, sent = LIMIT - 1) => {
    const head = `POST /v1/odd/thing HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer ${secret}\r\ncontent-type: application/json\r\ncontent-length: ${LIMIT}\r\n\r\n`
    const raw = rawClient(gateway.port, head + body.slice(0, sent))
    t.after(() => raw.socket.destroy())
    return raw
  }
  const refusal = async (raw: ReturnType<typeof upload>) => /"code":"(\w+)"/.exec(await raw.end())?.[1]

  const slow = [upload(KEY), upload(KEY)]
  await until(() => gateway.openCalls.size === 2, 'both')
  await new Promise((resolve) => setTimeout(resolve, 200))
  assert.equal(await refusal(upload(KEY, 2000)), 'concurrency_limited', 'the room of the key is taken')

  const other = upload(OTHER_KEY)
  await until(() => slow.some(({ received }) => received !== ''), 'one of the heavier account gives way')
  const [given] = slow.filter(({ received }) => received !== '')
  assert.equal(await refusal(given as (typeof slow)[0]), 'upstream_overloaded')
  assert.equal(one.requests.length, 0)

  const stay = slow.find(({ received }) => received === '') as (typeof slow)[0]
  for (const raw of [stay, other]) raw.socket.write('}')
  for (const raw of [stay, other]) assert.match(await raw.end(), /^HTTP\/1\.1 200 /)
  assert.deepEqual(
    one.requests.map(({ raw }) => raw.toString() === body),
    [true, true],
    'whole, and as it was sent',
  )
  // All that was counted is free.
  await until(() => gateway.openCalls.size === 0, 'the end of all')
  const again = [upload(KEY), upload(KEY)]
  await new Promise((resolve) => setTimeout(resolve, 200))
  for (const raw of again) raw.socket.write('}')
  for (const raw of again) assert.match(await raw.end(), /^HTTP\/1\.1 200 /)
})

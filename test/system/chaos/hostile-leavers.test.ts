import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseAmount } from '../../../lib/core/catalog/index.ts'
import {
  accountWallet,
  keyWallet,
  type Ledger,
  type LedgerAdmin,
  MemoryLedger,
} from '../../../lib/ledger/index.ts'
import { SqlLedger } from '../../../lib/stores/sql/index.ts'
import { type BilledGateway, billedGateway } from '../../middleware/billing-guard/billed-gateway.ts'
import { databaseUrl, open } from '../../stores/sql/support/temporary-database.ts'
import { KEY } from '../../support/gateway.ts'
import { type ScriptedUpstream, startUpstream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'
import { type Bill, type Leaver, LINES, leavers, PATHS, PROMPT, work } from './leaving-callers.ts'

const bodyOf = ({ api, form, streams }: Leaver): object => {
  const audio =
    form === 'audio' && api === 'chat'
      ? { modalities: ['text', 'audio'], audio: { voice: 'a', format: 'pcm16' } }
      : {}
  if (api === 'responses') return { input: PROMPT, max_output_tokens: 5000, stream: streams, store: false }
  return { messages: [{ role: 'user', content: PROMPT }], max_tokens: 5000, stream: streams, ...audio }
}

/** Sends a call over a socket of its own. */
function call({ url }: BilledGateway, leaver: Leaver): { socket: Socket; received: () => string } {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const body = JSON.stringify({ model: 'chat', ...bodyOf(leaver) })
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk) => {
    text += chunk
  })
  socket.on('error', () => {})
  socket.write(
    `POST ${PATHS[leaver.api]} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
  return { socket, received: () => text }
}

async function leaveAll(t: TestContext, all: readonly Leaver[], ledger: Ledger & LedgerAdmin): Promise<void> {
  const bills = new Map<string, Bill>()
  const billed = (name: string): Bill => {
    const bill = bills.get(name) ?? { input: 0, output: 0 }
    bills.set(name, bill)
    return bill
  }
  const charged = new Map<string, bigint>()
  let current: { leaver: Leaver; sent: boolean } | undefined
  const upstream: ScriptedUpstream = await startUpstream(async (res: ServerResponse) => {
    const now = current
    if (!now) return
    await work(res, now.leaver, billed(classOf(now.leaver)), () => {
      now.sent = true
    })
  })
  t.after(() => upstream.close())
  await ledger.deposit('globex', 7n, 'own', 0)
  const gateways = new Map<string, BilledGateway>()
  for (const leaver of all) {
    const reasons = leaver.form === 'unseen'
    const name = `${leaver.line} ${reasons}`
    const gateway =
      gateways.get(name) ??
      (await billedGateway(t, {
        ledger,
        lines: [
          {
            url: upstream.url,
            ...LINES[leaver.line],
            price: { inputPerMillion: '1', outputPerMillion: '10' },
          },
        ],
        model: {
          maxOutputTokens: 5000,
          contextWindow: 100_000,
          ...(reasons && { features: ['stream', 'reasoning'] }),
        },
        route: { drainMs: 100 },
      }))
    gateways.set(name, gateway)
    current = { leaver, sent: false }
    const before = upstream.requests.length
    const { socket, received } = call(gateway, leaver)
    await until(() => upstream.requests.length > before && gateway.openCalls.size === 1, 'the upstream works')
    const [open] = gateway.openCalls
    const seen = (): boolean => received().length > 0
    const isSeen = leaver.streams && leaver.form !== 'unseen'
    if (isSeen && leaver.moment !== 'first byte') await until(seen, 'the first event')
    if (leaver.moment === 'middle') await sleep(25)
    if (leaver.moment === 'end') await until(() => current?.sent === true, 'all of it')
    if (leaver.reset) socket.resetAndDestroy()
    else socket.end()
    await until(() => gateway.openCalls.size === 0, 'the end of the call')
    socket.destroy()
    const { billing, outcome } = await gateway.entry(open?.id ?? null)
    assert.equal(outcome, 'interrupted', JSON.stringify(leaver))
    const amount = parseAmount(billing?.charged ?? '0')
    assert.ok(amount <= parseAmount(billing?.reserved ?? '0') * 2n, JSON.stringify(leaver))
    charged.set(classOf(leaver), (charged.get(classOf(leaver)) ?? 0n) + amount)
  }
  for (const [name, { input, output }] of bills) {
    // The callers of plain answers leave before the upstream has sent anything, so they pay their input at most.
    const isPlain = name.endsWith(PLAIN)
    const bill = BigInt(input) * 1000n + (isPlain ? 0n : BigInt(output) * 10_000n)
    const paid = charged.get(name) ?? 0n
    assert.ok(paid * 10n >= bill * 9n, `${name}: ${paid} was charged of ${bill}`)
    if (isPlain) assert.ok(paid * 4n <= bill * 5n, `${name}: ${paid} was charged for an input of ${bill}`)
  }
  const [other] = await ledger.wallets([accountWallet('globex')])
  assert.deepEqual([other?.funds, other?.spent, other?.leased], [7n, 0n, 0n], "another account's money")
}

const PLAIN = ', plain'
const classOf = ({ form, streams }: Leaver): string => `${form}${streams ? ', streamed' : PLAIN}`

describe('a hundred callers that leave', () => {
  const accounts = { accounts: [{ id: 'acme', balance: '1000' }], keys: [{ id: 'key_acme', quota: '1000' }] }

  it('pay at least nine tenths of what the upstream bills, or of their input before it sends, in memory', async (t) => {
    const all = leavers()
    assert.ok(all.length >= 100, `${all.length} leave`)
    await leaveAll(t, all, new MemoryLedger(accounts))
  })

  it('and so do some of them in SQLite', async (t) => {
    const db = await open(t, await databaseUrl(t))
    const ledger = new SqlLedger(db)
    await ledger.setLimit(keyWallet('key_acme'), { limited: false })
    await ledger.deposit('acme', 1000n * 10n ** 9n, 'opening', 0)
    await leaveAll(
      t,
      leavers().filter((_, i) => i % 6 === 0),
      ledger,
    )
  })
})

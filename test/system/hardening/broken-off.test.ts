import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import fc from 'fast-check'
import type { CallLogEntry } from '../../../lib/core/call/index.ts'
import { type AssembledGateway, assembledGateway } from '../../support/assembled-gateway.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { KEY } from '../../support/gateway.ts'
import { until, untilAsync } from '../../support/until.ts'
import {
  type Break,
  type Breakable,
  type BrokenOff,
  breakables,
  breakOff,
  breaks,
  type CountingUpstream,
  countingUpstream,
  SOON_MS,
} from './broken-off.ts'

/** Requests that are broken off, so many at a time: the account has as many slots. */
const RUNS = 360
const AT_ONCE = 4

const ADMIN = 'admin-token-of-the-search'
const OTHER_KEY = 'sk-other'

interface LoggedEnd {
  readonly clientRequestId?: string
  readonly account?: string
  readonly method: string
  readonly path: string
  readonly status: number
  readonly code?: string
}

interface EntryPage {
  readonly data: readonly CallLogEntry[]
  readonly next_cursor: string | null
}

describe('requests that their callers break off', () => {
  const cleanUp = cleaningUp()
  let upstream: CountingUpstream
  let gateway: AssembledGateway
  let port: number
  let requests: readonly Breakable[]

  const admin = async <Answer>(path: string): Promise<Answer> => {
    const response = await fetch(gateway.url + path, { headers: { authorization: `Bearer ${ADMIN}` } })
    assert.equal(response.status, 200, path)
    return (await response.json()) as Answer
  }

  before(async () => {
    upstream = await countingUpstream(cleanUp)
    const kinds = ['chat', 'embedding', 'image', 'rerank', 'video'] as const
    const models = Object.fromEntries(kinds.map((kind) => [kind, kind]))
    const price = { perRequest: '0.01' }
    gateway = await assembledGateway(
      cleanUp,
      {
        accounts: [
          { id: 'acme', balance: '1000', limits: { concurrency: AT_ONCE } },
          { id: 'other', balance: '1000' },
        ],
        keys: [
          { id: 'key_acme', account: 'acme', secret: KEY },
          { id: 'key_other', account: 'other', secret: OTHER_KEY },
        ],
        models: kinds.map((kind) => ({ id: kind, kind, price })),
        lines: ['openai', 'anthropic'].map((protocol) => ({
          id: protocol,
          provider: protocol,
          protocol,
          baseUrl: `${upstream.url}/v1`,
          models: protocol === 'openai' ? models : { chat: 'chat' },
        })),
        passThrough: ['/v1/audio/*rest', '/v1/realtime'].map((path) => ({
          ...{ path, lines: ['openai'], price },
          raw: true,
        })),
      },
      { adminToken: ADMIN },
    )
    port = Number(new URL(gateway.url).port)
    const made = await gateway.send('/v1/videos', { model: 'video', prompt: 'waves' })
    const { id } = (await made.json()) as { id: string }
    requests = breakables(id)
  })

  /** Returns what was logged at the end of the calls of the account, by the ids of their callers. */
  function endsOf(ids: ReadonlySet<string>): Map<string, LoggedEnd[]> {
    const ends = accessLines().filter(({ clientRequestId: id }) => id !== undefined && ids.has(id))
    return Map.groupBy(ends, ({ clientRequestId }) => clientRequestId as string)
  }

  const accessLines = (): LoggedEnd[] =>
    gateway.logged.filter(({ message }) => message === 'call').map(({ fields }) => fields as LoggedEnd)

  /** Returns for how many calls of the account the entries of the call log stand. */
  async function callsInLog(): Promise<number> {
    let calls = 0
    let cursor: string | null = ''
    while (cursor !== null) {
      const page: EntryPage = await admin(
        `/admin/calls?account=acme&limit=100${cursor && `&cursor=${cursor}`}`,
      )
      for (const entry of page.data) if (!isLookUp(entry)) calls += 1 + (entry.repeats ?? 0)
      cursor = page.next_cursor
    }
    return calls
  }

  /** Takes all slots of the account at the same time. */
  async function takeAllSlots(): Promise<number[]> {
    const statuses = await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        const answer = await gateway.send('/v1/chat/completions', {
          model: 'chat',
          messages: [{ role: 'user', content: 'hi' }],
        })
        await answer.arrayBuffer()
        return answer.status
      }),
    )
    return statuses
  }

  it(`leave nothing behind, and each has its entry: ${RUNS} of all endpoints, at any moment and in any way`, async () => {
    const cases = fc.sample(breaks, { numRuns: RUNS, seed: Number(process.env.SEED ?? 20261128) })
    const seen = new Map<string, number>()
    for (let at = 0; at < cases.length; at += AT_ONCE) {
      const batch = cases.slice(at, at + AT_ONCE)
      const [{ serving } = { serving: 'now' as const }] = batch
      const said = batch
        .map(
          (each, i) =>
            `${requests[each.which % requests.length]?.name} ${at + i} ${JSON.stringify({ ...each, serving })}`,
        )
        .join('\n')
      try {
        const [kinds, statusOfOther] = await Promise.all([runBatch(batch, at), serveOther()])
        assert.equal(statusOfOther, 200, 'the other account is served throughout')
        for (const kind of kinds) seen.set(kind, (seen.get(kind) ?? 0) + 1)
      } catch (error) {
        throw new Error(`${(error as Error).message}\n${said}`, { cause: error })
      }
    }
    // The cases come to each kind of end.
    for (const kind of ['none', '499 client_closed_request', '200 null', '400 invalid_request'])
      assert.ok((seen.get(kind) ?? 0) > 5, `few with ${kind}: ${JSON.stringify([...seen])}`)
    assert.deepEqual(
      gateway.logged.filter(({ level }) => level === 'error'),
      [],
    )
    await untilAsync(
      async () => {
        const account = await admin<{ available: string; balance: string }>('/admin/accounts/acme')
        return account.available === account.balance
      },
      'the return of all that was held',
      30_000,
    )
    const ended = accessLines().filter((line) => line.account === 'acme' && !isLookUp(line)).length
    await untilAsync(async () => (await callsInLog()) === ended, `the entries of ${ended} calls`)
    const { violations } = await admin<{ violations: unknown[] }>('/admin/ledger/check')
    assert.deepEqual(violations, [])
  })

  /** Breaks some requests off at the same time and looks at what is left; resolves with how each was logged. */
  async function runBatch(batch: readonly Break[], at: number): Promise<string[]> {
    upstream.serving = batch[0]?.serving ?? 'now'
    const ids = batch.map((_, i) => `run-${at + i}`)
    const sent = await Promise.all(
      batch.map((each, i) => {
        const request = requests[each.which % requests.length] as Breakable
        return breakOff(port, KEY, ids[i] as string, request, each)
      }),
    )
    const wanted = new Set(ids.filter((_, i) => mustHaveEntry(sent[i] as BrokenOff, batch[i] as Break)))
    upstream.serving = 'now'
    let ends = new Map<string, LoggedEnd[]>()
    await until(() => upstream.inUse.size === 0, 'the end of requests to the upstream', SOON_MS).catch(
      (error: Error) => {
        throw new Error(`${error.message}: ${[...upstream.inUse.values()]}`)
      },
    )
    await until(
      () => {
        ends = endsOf(new Set(ids))
        return [...wanted].every((id) => ends.has(id))
      },
      'the end of each call',
      SOON_MS,
    ).catch((error: Error) => {
      throw new Error(`${error.message}: ${[...wanted].filter((id) => !ends.has(id))}`)
    })
    await untilAsync(
      async () => (await takeAllSlots()).every((status) => status === 200),
      'the return of all slots',
      SOON_MS,
    )
    return ids.map((id, i) => {
      const [end, second] = ends.get(id) ?? []
      assert.equal(second, undefined, `${id} has ended twice`)
      const logged = end ? `${end.status} ${end.code ?? null}` : 'none'
      assert.match(`${id}: ${logged}`, expected(sent[i] as BrokenOff, batch[i] as Break))
      return logged
    })
  }

  /** Serves the other account; resolves with the status of its answer. */
  async function serveOther(): Promise<number> {
    // A look-up: what the upstream answers is up to the run.
    const answer = await gateway.send('/v1/models', undefined, {
      headers: { authorization: `Bearer ${OTHER_KEY}` },
    })
    await answer.arrayBuffer()
    return answer.status
  }
})

/** Whether a call is a successful look-up: those share an entry a minute. */
function isLookUp({ method, path, status }: Pick<LoggedEnd, 'method' | 'path' | 'status'>): boolean {
  return method === 'GET' && status === 200 && path.startsWith('/v1/videos/')
}

/** A reset may overtake what was sent. */
function mustHaveEntry({ headSent }: BrokenOff, { way }: Break): boolean {
  return headSent && way !== 'reset'
}

/** Returns how a call may have been logged. */
function expected({ headSent, bodySent, isBroken }: BrokenOff, { way }: Break): RegExp {
  if (!headSent) return /: none$/
  const left = '499 client_closed_request'
  const none = way === 'reset' ? '|none' : ''
  if (isBroken) return /: 400 invalid_request$/
  if (!bodySent) return new RegExp(`: (?:${left}${none})$`)
  return new RegExp(`: (?:${left}|200 (?:null|client_closed_request)|101 null${none})$`)
}

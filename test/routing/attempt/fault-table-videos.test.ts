import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it } from 'node:test'
import type { ErrorCode } from '../../../lib/core/errors/index.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { closedPort } from '../../support/scripted-upstream.ts'
import { OTHER_KEY, startVideoGateway } from '../../support/video-gateway.ts'
import { errorOf, VIDEO_PROTOCOLS } from '../../support/video-protocols.ts'
import { json, startVideoUpstream } from '../../support/video-upstream.ts'
import { type Fault, type FaultRow, NAMED, noticed, TABLE } from '../support/fault-rows.ts'
import { closedBy, restingOn, shutFor } from '../support/line-states.ts'

/** The fate of a create: another line gets it, nobody gets it, or nobody knows and its money stays held. */
type Fate = 'moves' | 'refused' | 'in doubt'

interface Row {
  readonly what: string
  readonly does: (res: ServerResponse) => void
  readonly code: ErrorCode
  readonly fault: Fault
  readonly fate: Fate
  readonly rests?: boolean
  readonly timeouts?: Record<string, number>
  /** Whether nothing listens where the line is. */
  readonly absent?: boolean
}

/** Whether an answer says that the create was not taken. After any other the line may make the video. */
const refuses = (status: number): boolean =>
  (status >= 400 && status < 500 && status !== 408) || [503, 529].includes(status)

function refusal(
  [what, status, error, code, fault, next, headers, restMs]: FaultRow,
  under200: boolean,
): Row {
  const isRefusal = refuses(status)
  return {
    what: `${status} about ${what}${under200 ? ', under 200' : ''}`,
    does: (res) => json(res, under200 ? 200 : status, { error }, headers),
    code: isRefusal ? code : 'upstream_error',
    fault,
    fate: isRefusal ? (next ? 'moves' : 'refused') : 'in doubt',
    rests: restMs !== undefined,
  }
}

const DOUBT = { code: 'upstream_error', fault: 'model', fate: 'in doubt' } as const
const LATE = { ...DOUBT, code: 'upstream_timeout' } as const

/** The words of an error are judged as those of an answer to a chat call. */
const errorsOf = (rows: readonly FaultRow[]): FaultRow[] =>
  [true, false].flatMap((refused) => noticed(rows.filter(([, status]) => refuses(status) === refused)))

const ROWS: readonly Row[] = [
  ...errorsOf(TABLE).map((row) => refusal(row, false)),
  ...errorsOf(NAMED).map((row) => refusal(row, true)),
  {
    what: 'a connection that is refused',
    does: () => {},
    code: 'upstream_error',
    fault: 'line',
    fate: 'moves',
    absent: true,
  },
  { what: 'a reset', does: (res) => void res.socket?.resetAndDestroy(), ...DOUBT },
  {
    what: 'a reset within the answer',
    does(res) {
      res.writeHead(200, { 'content-length': 100 }).write('{"id":')
      setTimeout(() => res.destroy(), 20)
    },
    ...DOUBT,
  },
  { what: 'no answer: first-byte clock', does: () => {}, timeouts: { firstByteMs: 300 }, ...LATE },
  {
    what: 'half an answer: idle clock',
    does: (res) => void res.writeHead(200).write('{"id":'),
    timeouts: { idleMs: 300 },
    ...LATE,
  },
  { what: 'no answer: total clock', does: () => {}, timeouts: { totalMs: 300 }, ...LATE },
  { what: 'no JSON', does: (res) => void res.end('<html>'), ...DOUBT },
  { what: 'no id', does: (res) => json(res, 200, { status: 'queued' }), ...DOUBT },
]

describe('the answer of an upstream to the create of a video', async () => {
  const cleanUp = cleaningUp()
  const bad = await startVideoUpstream()
  cleanUp.after(() => bad.close())
  const good = await startVideoUpstream()
  cleanUp.after(() => good.close())
  const nowhere = `http://127.0.0.1:${await closedPort()}`

  for (const { kind, path, body } of VIDEO_PROTOCOLS) {
    for (const { what, does, code, fault, fate, rests = false, timeouts = {}, absent = false } of ROWS) {
      it(`${what}, ${kind}: ${code}, ${fault}, ${fate}`, async (t) => {
        bad.requests.length = 0
        good.requests.length = 0
        bad.script = (_req, res) => {
          does(res)
          return true
        }
        const circuit = { minimumCalls: 1, errorPercent: 50, resetMs: 60_000 }
        const gateway = await startVideoGateway(t, {
          lines: [
            { kind, url: absent ? nowhere : bad.url, circuit, timeouts },
            { kind, url: good.url, circuit },
          ],
        })
        const create = (key: string) => gateway.send('POST', path, body(), { authorization: `Bearer ${key}` })
        for (const [i, key] of ['sk-video-1', OTHER_KEY].entries()) {
          const response = await create(key)
          if (fate === 'moves') assert.equal(response.status, 200)
          else assert.equal((await errorOf(response)).code, code)
          const { routing } = await gateway.entry(response)
          const moved = fate === 'moves' ? [['line-1', 'completed']] : []
          assert.deepEqual(
            routing?.attempts.map(({ line, outcome }) => [line, outcome]),
            [['line-0', code], ...moved],
          )
          const accounts = ['acme', 'other'].slice(0, i + 1)
          assert.deepEqual(
            shutFor(gateway, ['video'], ['acme', 'other']),
            closedBy(fault, ['video'], accounts),
          )
          assert.equal(restingOn(gateway).length, rests ? 1 : 0)
          gateway.lines.liftRests('line-0')
        }
        assert.deepEqual(
          [bad.seen('POST').length, good.seen('POST').length],
          [absent ? 0 : 2, fate === 'moves' ? 2 : 0],
        )
        const { spent, leased } = await gateway.money()
        assert.equal(spent, 0n, 'a video is charged when it is made')
        assert.equal(leased > 0n, fate !== 'refused', 'held while one is made, or may be')
        const tasks = await gateway.tasks.list({}, { order: 'newest', limit: 10 })
        const state = { moves: ['queued', 'queued'], refused: [], 'in doubt': ['unresolved', 'unresolved'] }[
          fate
        ]
        assert.deepEqual(
          tasks.map((task) => task.state),
          state,
        )
      })
    }
  }
})

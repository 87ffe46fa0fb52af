import { eventsOf, OPENAI, STREAMS } from '../../support/exchange.ts'
import { SECRET, testOutcomes } from '../../support/outcome-row.ts'
import { stream } from '../../support/scripted-upstream.ts'

const late = { code: 'upstream_timeout', failsOver: true, blames: true, within: 5000 } as const
const timeouts = (short: Record<string, number>) => ({ timeouts: { ...short } })

testOutcomes('a line that takes too long', [
  {
    does: 'never answers: first-byte clock',
    script: () => {},
    line: timeouts({ firstByteMs: 60 }),
    ...late,
    timeoutPhase: 'first_byte',
  },
  {
    does: 'sends its head and no byte: first-byte clock',
    script(res, mode) {
      res.writeHead(200, { 'content-type': mode.stream ? 'text/event-stream' : 'application/json' })
      res.flushHeaders()
    },
    line: timeouts({ firstByteMs: 1000 }),
    ...late,
    timeoutPhase: 'first_byte',
    upstreamStatus: 200,
  },
  {
    does: 'stops in the middle of a whole answer: idle clock',
    script: (res) => void res.writeHead(200, { 'content-type': 'application/json' }).write(`{"${SECRET}`),
    line: timeouts({ idleMs: 60 }),
    ...late,
    modes: [OPENAI],
    timeoutPhase: 'idle',
    upstreamStatus: 200,
  },
  {
    does: 'stops behind the role: idle clock',
    script: (res, mode) => stream(res, eventsOf(mode, []).slice(0, 1), { end: false }),
    line: timeouts({ idleMs: 60 }),
    ...late,
    modes: STREAMS,
    timeoutPhase: 'idle',
    upstreamStatus: 200,
  },
  {
    does: 'keeps sending comments: total clock',
    script: (res) => stream(res, new Array(500).fill(`: ${SECRET}\n\n`), { paceMs: 10 }),
    // The call's deadline is the largest total clock of its lines, so that the next line has time left.
    line: timeouts({ totalMs: 1000, idleMs: 5000 }),
    ...late,
    modes: STREAMS,
    timeoutPhase: 'total',
    upstreamStatus: 200,
  },
  {
    does: 'never answers, and its total clock is the shortest',
    script: () => {},
    line: timeouts({ totalMs: 60 }),
    ...late,
    modes: [OPENAI],
    timeoutPhase: 'total',
  },
])

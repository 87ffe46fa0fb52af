import type { ServerResponse } from 'node:http'
import { ANTHROPIC, eventsOf, OPENAI, OPENAI_STREAM, STREAMS } from '../../support/exchange.ts'
import { SECRET, testOutcomes } from '../../support/outcome-row.ts'
import { answerJson, chatChunk, stream } from '../../support/scripted-upstream.ts'

const malformed = { code: 'upstream_error', upstreamStatus: 200, failsOver: true, blames: true } as const
const plain = { modes: [OPENAI, ANTHROPIC], ...malformed }
const streamed = { modes: STREAMS, ...malformed }
const send =
  (body: string, type = 'application/json', headers: Record<string, string> = {}) =>
  (res: ServerResponse) =>
    void res.writeHead(200, { 'content-type': type, ...headers }).end(body)

testOutcomes('a line whose whole answer is malformed', [
  { does: 'answers broken JSON', script: send(`{"choices": [${SECRET}`), ...plain },
  { does: 'answers JSON of another shape', script: send(`{"text":"${SECRET}"}`), ...plain },
  { does: 'answers null', script: send('null'), ...plain },
  { does: 'answers an error with 200', script: send(`{"error":{"message":"${SECRET}"}}`), ...plain },
  { does: 'answers a page', script: send(`<h1>${SECRET}</h1>`, 'text/html'), ...plain },
  { does: 'answers nothing at all', script: send(''), ...plain },
  {
    does: 'streams to a caller who did not ask for it',
    script: send(`data: ${SECRET}\n\n`, 'text/event-stream'),
    ...plain,
  },
  {
    does: 'ends before its content-length',
    script(res) {
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': '9000' })
      res.write(`{"choices":[{"message":{"content":"${SECRET}"}}]`)
      setTimeout(() => res.socket?.end(), 20)
    },
    ...plain,
  },
])

testOutcomes('a line whose stream is malformed before it began', [
  { does: 'answers a page', script: send(`<h1>${SECRET}</h1>`, 'text/html'), ...streamed },
  {
    does: 'answers JSON of an error',
    script: (res) => answerJson(res, 200, { error: { message: SECRET } }),
    ...streamed,
  },
  { does: 'ends without a word', script: (res) => stream(res, []), ...streamed },
  { does: 'ends behind a comment', script: (res) => stream(res, [`: ${SECRET}\n\n`]), ...streamed },
  {
    does: 'ends behind the role',
    script: (res, mode) => stream(res, eventsOf(mode, []).slice(0, 1)),
    ...streamed,
  },
  {
    does: 'sends an event that is not JSON',
    script: (res, mode) => stream(res, [`data: {"${SECRET}\n\n`, ...eventsOf(mode, [SECRET])]),
    ...streamed,
  },
  {
    does: 'sends an event that is not an object',
    script: (res, mode) => stream(res, ['data: 7\n\n', ...eventsOf(mode, [SECRET])]),
    ...streamed,
  },
  {
    does: 'resets behind the role',
    async script(res) {
      await stream(res, [chatChunk({ role: 'assistant', content: '' })], { paceMs: 20, end: false })
      res.socket?.resetAndDestroy()
    },
    ...malformed,
    modes: [OPENAI_STREAM],
  },
])

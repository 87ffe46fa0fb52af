import type { ServerResponse } from 'node:http'
import { type OutcomeRow, SECRET, testOutcomes } from '../../support/outcome-row.ts'
import { answerJson } from '../../support/scripted-upstream.ts'

const body = { error: { type: 'api_error', code: SECRET, message: SECRET } }
const says =
  (status: number, headers: Record<string, string> = {}, json: unknown = body) =>
  (res: ServerResponse) =>
    answerJson(res, status, json, { server: SECRET, 'x-request-id': SECRET, ...headers })

const failing = (status: number): OutcomeRow => ({
  does: `answers ${status}`,
  script: says(status),
  code: status === 503 || status === 529 ? 'upstream_overloaded' : 'upstream_error',
  upstreamStatus: status,
  failsOver: true,
  blames: true,
})

testOutcomes('a line that answers with an error of its own', [
  ...[500, 502, 503, 504, 529, 599].map(failing),
  // Our credentials, our account there or our mapping are wrong; never the caller's.
  ...[401, 402, 404].map(failing),
  {
    ...failing(403),
    script: says(403, {}, { error: { type: 'permission_error', message: SECRET } }),
  },
  {
    ...failing(503),
    does: 'answers 503 with a page',
    script: (res) => void res.writeHead(503, { 'content-type': 'text/html' }).end(`<h1>${SECRET}</h1>`),
  },
  { ...failing(500), does: 'answers 500 without a body', script: (res) => void res.writeHead(500).end() },
  // A success, but none that an answer comes with.
  { ...failing(204), does: 'answers 204', script: (res) => void res.writeHead(204).end() },
  {
    ...failing(302),
    does: 'redirects',
    script: (res) => void res.writeHead(302, { location: `http://127.0.0.1:1/${SECRET}` }).end(),
  },
])

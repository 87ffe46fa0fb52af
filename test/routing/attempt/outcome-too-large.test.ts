import { ANTHROPIC, eventsOf, type Mode, OPENAI, STREAMS } from '../../support/exchange.ts'
import { type OutcomeRow, SECRET, testOutcomes } from '../../support/outcome-row.ts'
import { answerJson, chatAnswer, messageAnswer, stream } from '../../support/scripted-upstream.ts'

/** Values that bodies are refused for, too, each within its bytes. */
const EXCESSIVE = {
  '500,001 values': `[${'0,'.repeat(500_000)}0]`,
  '10,001 members of one object': `{${Array.from({ length: 10_001 }, (_, i) => `"${i}":0`)}}`,
  '100,001 members': `[${'{"a":0},'.repeat(100_000)}{"a":0}]`,
  '129 levels': `${'['.repeat(128)}${']'.repeat(128)}`,
}
const malformed = { code: 'upstream_error', failsOver: true, blames: true } as const

/** A text with the value in a member that nobody reads. */
const withExtra = (json: string, value: string): string => json.replace('{', `{"extra":${value},`)

function whole({ protocol }: Mode): string {
  let text = ''
  const res = { writeHead: () => ({ end: (body: string) => (text = body) }) } as never
  if (protocol === 'openai') chatAnswer(res, SECRET)
  else messageAnswer(res, SECRET)
  return text
}

testOutcomes(
  'a line whose answer is too large to be parsed',
  Object.entries(EXCESSIVE).flatMap(([what, value]): OutcomeRow[] => [
    {
      does: `answers with ${what}`,
      script: (res, mode) =>
        void res.writeHead(200, { 'content-type': 'application/json' }).end(withExtra(whole(mode), value)),
      modes: [OPENAI, ANTHROPIC],
      upstreamStatus: 200,
      ...malformed,
    },
    {
      does: `sends an event with ${what}`,
      script(res, mode) {
        const [first = '', ...others] = eventsOf(mode, [SECRET])
        return stream(res, [withExtra(first, value), ...others])
      },
      modes: STREAMS,
      upstreamStatus: 200,
      ...malformed,
    },
  ]),
)

testOutcomes('a line whose refusal is too large to be parsed', [
  {
    does: 'refuses with 129 levels, of which no words are read',
    script: (res) =>
      answerJson(res, 500, { error: { message: SECRET }, extra: JSON.parse(EXCESSIVE['129 levels']) }),
    upstreamStatus: 500,
    ...malformed,
  },
])

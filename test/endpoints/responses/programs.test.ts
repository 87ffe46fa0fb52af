import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { cleaningUp } from '../../support/clean-up.ts'
import { responseBody } from '../../support/responses-upstream.ts'
import { answerJson, startUpstream } from '../../support/scripted-upstream.ts'
import { idOf, responsesGateway } from './accounts.ts'

/** The program that the model wrote, and a call of a function by it. */
const caller = { type: 'program', caller_id: 'call_program' }
const OUTPUT = [
  { id: 'cm_1', type: 'program', call_id: 'call_program', code: 'await f({})', fingerprint: 'c2VhbGVk' },
  { id: 'fc_1', type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{}', caller },
]
const RESULT = { type: 'function_call_output', call_id: 'call_1', output: '7', caller }

describe('a function that was called by a program of the model', async () => {
  const cleanUp = cleaningUp()
  const upstream = await startUpstream((res, _request, index) =>
    answerJson(res, 200, responseBody(OUTPUT, { id: `resp_${index}` })),
  )
  cleanUp.after(() => upstream.close())
  const tools = [{ type: 'programmatic_tool_calling' }, { type: 'function', name: 'f', parameters: {} }]

  for (const store of [true, false])
    it(`gets its result back, with "store": ${store}`, async (t) => {
      const line = { url: upstream.url, endpoints: ['responses'] }
      const gateway = await responsesGateway(t, { lines: [line] })
      const first = await gateway.create({ tools, store })
      const { output } = first.json as { output: object[] }
      const turns = [
        { input: [{ role: 'user', content: 'hi' }, ...output, RESULT] },
        ...(store ? [{ previous_response_id: idOf(first), input: [RESULT] }] : []),
      ]
      for (const turn of turns) {
        const answer = await gateway.create({ tools, store, ...turn })
        assert.equal(answer.status, 200, answer.text)
        assert.deepEqual(upstream.requests.at(-1)?.json.input, turn.input)
      }
    })
})

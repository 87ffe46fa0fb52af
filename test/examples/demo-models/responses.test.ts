import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import OpenAI from 'openai'
import type { DemoModels } from '../../../examples/gateway/demo-models/server.ts'
import { startDemoModels } from '../../../examples/gateway/demo-models/server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { drain, openaiFor, WEATHER, WEATHER_EXAMPLE } from './clients.ts'

let demo: DemoModels
let openai: OpenAI

const cleanUp = cleaningUp()
before(async () => {
  demo = await startDemoModels({ apiKey: 'sk-demo', paceMs: 0 })
  cleanUp.after(() => demo.close())
  openai = openaiFor(demo.url)
})

const asked = { model: 'demo-chat', input: 'What is a gateway?' }
const tool = {
  type: 'function' as const,
  name: 'get_weather',
  parameters: { ...WEATHER },
  strict: false,
}

describe('responses', () => {
  it('say first that they are a demo, repeat the question, and count what they wrote', async () => {
    const { output_text: text, usage, status } = await openai.responses.create(asked)
    assert.match(text, /^This is demo-chat, the demo model .*"What is a gateway\?"/)
    assert.equal(status, 'completed')
    assert.ok(usage && usage.output_tokens > 20 && usage.input_tokens > 7)
    assert.equal(usage.total_tokens, usage.input_tokens + usage.output_tokens)
  })

  it('stream the very text and usage of the plain answer', async () => {
    const plain = await openai.responses.create(asked)
    const streamed = await openai.responses.stream(asked).finalResponse()
    assert.equal(streamed.output_text, plain.output_text)
    assert.deepEqual(streamed.usage, plain.usage)
  })

  it('number their events from 0 on', async () => {
    const { items, error } = await drain(await openai.responses.create({ ...asked, stream: true }))
    assert.equal(error, undefined)
    assert.deepEqual(
      items.map(({ sequence_number }) => sequence_number),
      items.map((_, i) => i),
    )
  })

  it('call the tool that is named, plain and streamed, and answer its result', async () => {
    const wanted = { ...asked, input: 'Use get_weather, please.', tools: [tool] }
    for (const answer of [
      await openai.responses.create(wanted),
      await openai.responses.stream(wanted).finalResponse(),
    ]) {
      const [call] = answer.output
      assert.ok(call?.type === 'function_call')
      assert.deepEqual(JSON.parse(call.arguments), WEATHER_EXAMPLE)
      const told = await openai.responses.create({
        model: 'demo-chat',
        previous_response_id: answer.id,
        input: [{ type: 'function_call_output', call_id: call.call_id, output: 'Sunny' }],
        tools: [tool],
      })
      assert.match(told.output_text, /The tool answered: "Sunny"/)
    }
  })

  it('end early at the limit of their output', async () => {
    for (const answer of [
      await openai.responses.create({ ...asked, max_output_tokens: 5 }),
      await openai.responses.stream({ ...asked, max_output_tokens: 5 }).finalResponse(),
    ]) {
      assert.equal(answer.status, 'incomplete')
      assert.equal(answer.incomplete_details?.reason, 'max_output_tokens')
      assert.equal(answer.usage?.output_tokens, 5)
    }
  })

  it('go on from an earlier one, whose conversation counts as input', async () => {
    const first = await openai.responses.create(asked)
    const second = await openai.responses.create({
      model: 'demo-chat',
      previous_response_id: first.id,
      input: 'And?',
    })
    assert.equal(second.previous_response_id, first.id)
    assert.ok(second.usage && first.usage && second.usage.input_tokens > first.usage.total_tokens)
    await assert.rejects(
      openai.responses.create({ ...asked, previous_response_id: 'resp_none' }),
      (error) => error instanceof OpenAI.BadRequestError && error.code === 'previous_response_not_found',
    )
  })

  it('are kept: retrieved, their input listed, deleted; unless they are not to be', async () => {
    const made = await openai.responses.create(asked)
    assert.deepEqual(await openai.responses.retrieve(made.id), made)
    const [item] = (await openai.responses.inputItems.list(made.id)).data
    assert.ok(item?.type === 'message')
    await openai.responses.delete(made.id)
    const passing = await openai.responses.create({ ...asked, store: false })
    for (const { id } of [made, passing])
      await assert.rejects(openai.responses.retrieve(id), OpenAI.NotFoundError)
  })
})

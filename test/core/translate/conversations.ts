import fc from 'fast-check'

/** One step of a tool loop. */
interface Call {
  readonly name: string
  readonly input: Readonly<Record<string, unknown>>
  readonly result: string
  readonly failed: boolean
  readonly image: string | undefined
}

/** A conversation in no protocol's words. */
export interface Conversation {
  readonly system: readonly string[]
  readonly rounds: readonly {
    readonly asked: readonly string[]
    readonly images: readonly string[]
    readonly said: string
    readonly calls: readonly Call[]
    readonly answered: string
  }[]
}

const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }).filter((value) => value.trim() !== '')
const image = fc.oneof(
  fc.webUrl().map((url) => url.replace(/[^!-~]/g, '')),
  fc.base64String({ maxLength: 12 }).map((data) => `data:image/png;base64,${data}`),
)
const json = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3, noNullPrototype: true })

const call: fc.Arbitrary<Call> = fc.record({
  name: fc.stringMatching(/^[a-zA-Z0-9_-]{1,20}$/),
  // As JSON has it: -0 is written 0.
  input: json.map((value) => JSON.parse(JSON.stringify(value)) as Record<string, unknown>),
  result: fc.oneof(fc.constant(''), text),
  failed: fc.boolean(),
  image: fc.option(image, { nil: undefined }),
})

/** Generated conversations: prompts, images, several tool calls in a turn, results with images and errors. */
export const conversations: fc.Arbitrary<Conversation> = fc.record({
  system: fc.array(text, { maxLength: 2 }),
  rounds: fc.array(
    fc.record({
      asked: fc.array(text, { minLength: 1, maxLength: 3 }),
      images: fc.array(image, { maxLength: 2 }),
      said: fc.oneof(fc.constant(''), text),
      calls: fc.array(call, { maxLength: 3 }),
      answered: text,
    }),
    { minLength: 1, maxLength: 4 },
  ),
})

const textOf = (value: string) => ({ type: 'text', text: value })

/** The conversation as a chat completion request. A failed result says so in its text. */
export function asChat({ system, rounds }: Conversation) {
  const imagePart = (url: string) => ({ type: 'image_url', image_url: { url } })
  const messages = rounds.flatMap(({ asked, images, said, calls, answered }, round) => [
    { role: 'user', content: [...asked.map(textOf), ...images.map(imagePart)] },
    ...(said === '' && calls.length === 0
      ? []
      : [
          {
            role: 'assistant',
            content: said === '' ? null : said,
            ...(calls.length > 0 && {
              tool_calls: calls.map(({ name, input }, i) => ({
                id: `call_${round}_${i}`,
                type: 'function',
                function: { name, arguments: JSON.stringify(input) },
              })),
            }),
          },
        ]),
    ...calls.map(({ result, failed, image: shown }, i) => ({
      role: 'tool',
      tool_call_id: `call_${round}_${i}`,
      content: shown
        ? [textOf(`${failed ? 'Error: ' : ''}${result}!`), imagePart(shown)]
        : `${failed ? 'Error: ' : ''}${result}`,
    })),
    ...(calls.length > 0 ? [{ role: 'assistant', content: answered }] : []),
  ])
  return { model: 'chat', messages: [...system.map((content) => ({ role: 'system', content })), ...messages] }
}

/** The conversation as a message request. */
export function asMessages({ system, rounds }: Conversation) {
  const imageBlock = (url: string) => ({
    type: 'image',
    source: url.startsWith('data:')
      ? { type: 'base64', media_type: 'image/png', data: url.slice(url.indexOf(',') + 1) }
      : { type: 'url', url },
  })
  const messages = rounds.flatMap(({ asked, images, said, calls, answered }, round) => [
    { role: 'user', content: [...asked.map(textOf), ...images.map(imageBlock)] },
    ...(said === '' && calls.length === 0
      ? []
      : [
          {
            role: 'assistant',
            content: [
              ...(said === '' ? [] : [textOf(said)]),
              ...calls.map(({ name, input }, i) => ({
                type: 'tool_use',
                id: `toolu_${round}_${i}`,
                name,
                input,
              })),
            ],
          },
        ]),
    ...(calls.length === 0
      ? []
      : [
          {
            role: 'user',
            content: calls.map(({ result, failed, image: shown }, i) => ({
              type: 'tool_result',
              tool_use_id: `toolu_${round}_${i}`,
              content: shown ? [textOf(`${result}!`), imageBlock(shown)] : result,
              is_error: failed,
            })),
          },
          { role: 'assistant', content: answered },
        ]),
  ])
  return {
    model: 'chat',
    max_tokens: 100,
    ...(system.length > 0 && { system: system.map(textOf) }),
    messages,
  }
}

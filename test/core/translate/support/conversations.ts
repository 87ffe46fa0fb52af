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
interface Conversation {
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

type Item = Readonly<Record<string, unknown>>

/** One thing that is said, shown, called or answered in a conversation, whatever the protocol. */
type Atom = readonly [who: 'system' | 'user' | 'assistant' | 'result', what: string, value: string]

const LABEL = /^Part of the result of [\w-]+:$/

/**
 * The meaning of a conversation in either protocol: the texts, images, calls and results of each side, in their order.
 * Texts of one side that follow each other are one; images of results stand behind the results, where OpenAI's protocol
 * wants them.
 */
export function meaningOf(request: Item): Atom[] {
  const atoms: Atom[] = []
  let shown: Atom[] = []
  const showImages = () => {
    atoms.push(...shown)
    shown = []
  }
  for (const value of itemsIn(request.system)) atoms.push(['system', 'text', String(value.text)])
  for (const message of itemsIn(request.messages)) {
    if (message.role === 'tool') {
      const { result, images } = resultOf(message.tool_call_id, message)
      atoms.push(result)
      shown.push(...images)
      continue
    }
    const blocks = itemsIn(message.content)
    for (const block of blocks.filter(({ type }) => type === 'tool_result')) {
      const { result, images } = resultOf(block.tool_use_id, block)
      atoms.push(result)
      shown.push(...images)
    }
    showImages()
    const who = message.role as 'system' | 'user' | 'assistant'
    for (const block of blocks) if (block.type !== 'tool_result') atoms.push(...atomOf(who, block))
    for (const { id, function: called } of itemsIn(message.tool_calls)) {
      const { name, arguments: input } = called as Item
      atoms.push([who, `call ${String(id)} of ${String(name)}`, canonical(JSON.parse(String(input)))])
    }
  }
  showImages()
  return joined(atoms)
}

function atomOf(who: 'system' | 'user' | 'assistant', block: Item): Atom[] {
  if (block.type === 'text') return LABEL.test(String(block.text)) ? [] : [[who, 'text', String(block.text)]]
  if (block.type === 'tool_use')
    return [[who, `call ${String(block.id)} of ${String(block.name)}`, canonical(block.input)]]
  return [[who, 'image', imageOf(block)]]
}

function resultOf(id: unknown, holder: Item): { result: Atom; images: Atom[] } {
  const blocks = itemsIn(holder.content)
  const texts = blocks.filter(({ type }) => type === 'text').map(({ text }) => String(text))
  const images = blocks.filter(({ type }) => type !== 'text').map(imageOf)
  const text = (holder.is_error === true ? 'Error: ' : '') + texts.join('\n')
  return { result: ['result', String(id), text], images: images.map((image) => ['user', 'image', image]) }
}

function imageOf({ image_url: image, source }: Item): string {
  if (image) return String((image as Item).url)
  const { type, url, media_type: mediaType, data } = source as Item
  return type === 'url' ? String(url) : `data:${String(mediaType)};base64,${String(data)}`
}

/** The items of a list; of a text, itself as one. */
function itemsIn(value: unknown): Item[] {
  if (typeof value === 'string') return [{ type: 'text', text: value }]
  return Array.isArray(value) ? (value as Item[]) : []
}

function joined(atoms: readonly Atom[]): Atom[] {
  const whole: Atom[] = []
  for (const atom of atoms) {
    const last = whole.at(-1)
    if (last && last[0] === atom[0] && last[1] === 'text' && atom[1] === 'text')
      whole[whole.length - 1] = [last[0], 'text', last[2] + (atom[0] === 'system' ? '\n\n' : '') + atom[2]]
    else whole.push(atom)
  }
  return whole
}

/** JSON whose members stand in the order of their names. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )
}

type Item = Readonly<Record<string, unknown>>

/** One thing that is said, shown, called or answered in a conversation, whatever the protocol. */
export type Atom = readonly [who: 'system' | 'user' | 'assistant' | 'result', what: string, value: string]

const LABEL = /^Part of the result of [\w-]+:$/

/**
 * What a conversation means, of either protocol: who says, shows, calls and answers what, in which order. Texts of one side
 * that follow each other are one; images of results stand behind the results, where OpenAI's protocol wants them.
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

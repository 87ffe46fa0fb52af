import { readFileSync } from 'node:fs'
import type { Cell } from './cells.ts'
import type { Exception } from './expectations.ts'
import type { Framework } from './frameworks/framework.ts'
import type { LineKind } from './gateways.ts'
import { SCENARIOS } from './scenarios.ts'

/** The column of Gemini, after those of the scenarios. */
const GEMINI = 'Gemini'
const COLUMNS = [...SCENARIOS, GEMINI] as const

const { devDependencies: versions } = JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
) as { devDependencies: Record<string, string> }

const labelOf = ({ name }: Framework): string => {
  const [, dependency = '', rest = ''] = /^(\S+)( .+)?$/.exec(name) ?? []
  const version = versions[dependency]
  return version === undefined ? name : `${dependency}@${version}${rest ?? ''}`
}

/** The page about all that was found. */
export function pageOf(frameworks: readonly Framework[], all: readonly Cell[]): string {
  const notes: string[] = []
  const noteOf = (text: string): string => {
    if (!notes.includes(text)) notes.push(text)
    return superscript(notes.indexOf(text) + 1)
  }
  const rows = frameworks.map((framework) => {
    const cells = COLUMNS.map((column) => {
      const found = all.filter(
        (one) =>
          one.framework === framework &&
          (column === GEMINI ? one.line === 'gemini' : one.scenario === column && one.line !== 'gemini'),
      )
      return cellOf(found, noteOf)
    })
    return `|${[labelOf(framework), framework.speaks, ...cells].join('|')}|`
  })
  const head = ['client', 'endpoint', ...SCENARIOS, `tools, ${GEMINI}`]
  return `${HEAD}
|${head.join('|')}|
|${head.map(() => '-').join('|')}|
${rows.join('\n')}

${notes.map((note, i) => `${i + 1}. ${note}`).join('\n')}
${TAIL}`
}

function cellOf(found: readonly Cell[], noteOf: (text: string) => string): string {
  if (found.length === 0) return '–'
  const notes = new Map<string, LineKind[]>()
  for (const { line, scenario, exception, forgets } of found) {
    const forgotten = scenario === 'reasoning' && !exception && forgets
    const note = exception ? noteTextOf(exception) : forgotten ? FORGOTTEN : undefined
    if (note !== undefined) notes.set(note, [...(notes.get(note) ?? []), line])
  }
  const refused = found.filter(({ exception }) => exception).length
  const marks = [...notes].map(([text, lines]) =>
    noteOf(lines[0] === 'gemini' ? text : `${lines.join(', ')}: ${text}`),
  )
  return `${refused < found.length ? '✓' : ''}${[...new Set(marks)].join(' ')}`
}

const FORGOTTEN = 'works, but the client does not send back what was thought'
const noteTextOf = ({ refused, because = refused, setting }: Exception): string =>
  setting === undefined ? `refused: “${because}”` : `works with ${setting}; else refused: “${because}”`

const superscript = (number: number): string =>
  [...`${number}`].map((digit) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(digit)]).join('')

const HEAD = `# Clients

What clients do by default works on every kind of line (✓), but for the numbered notes. A test run made this table: each client calls
stand-ins of OpenAI, of a chat-only OpenAI-style provider (\`open-models\`), and of Anthropic, which refuse what these refuse.

- \`tools\`: three turns with calls at once and without arguments, then a question; plain and streamed
- \`structured\`: a schema with bounds such as \`maxLength\`
- \`reasoning\`: \`tools\` with thinking, which must come back unchanged
- \`tools, Gemini\`: its \`thought_signature\` must come back
`

/** What was found by hand. */
const TAIL = `
## Others

Tried by hand, with a question, several tools and a stream: opencode, Kilo Code, Cline, Continue, Qwen Code, Mastra, LlamaIndex, LangGraph,
Genkit, and the SDKs of Groq, Together and Mistral. To know:

- \`groq-sdk\`: \`baseURL\` without \`/openai/v1\`; \`@mistralai/mistralai\`: \`serverURL\` without \`/v1\`
- \`@mistralai/mistralai\`, \`@ai-sdk/xai\` \`.chat\`: a streamed tool call must come in one piece, as from lines of Mistral's and xAI's. On others
  use \`@ai-sdk/mistral\`, \`@ai-sdk/xai\` \`.responses\`
- \`cohere-ai\`: \`CohereClient\`. \`CohereClientV2\` calls \`/v2/rerank\`, which is not served
- \`portkey-ai\`, \`@openrouter/sdk\`: see [from Portkey and OpenRouter](from-portkey-openrouter.md)
`

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
    noteOf(lines[0] === 'gemini' || text === FORGOTTEN ? text : `${lines.join(', ')}: ${text}`),
  )
  return `${refused < found.length ? '✓' : ''}${[...new Set(marks)].join(' ')}`
}

const FORGOTTEN = 'works, but on some lines the client does not send back the thinking'
const noteTextOf = ({ refused, because = refused, setting }: Exception): string =>
  setting === undefined ? `refused: “${because}”` : `works with ${setting}; else refused: “${because}”`

const superscript = (number: number): string =>
  [...`${number}`].map((digit) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(digit)]).join('')

const HEAD = `# Which clients work

A test calls the gateway with these clients, with their default settings, on stand-ins of OpenAI, of a chat-only OpenAI-style provider
(\`open-models\`) and of Anthropic. ✓ works on all three; the notes name exceptions.

- \`tools\`: three turns with parallel calls and calls without arguments, then a question; plain and streamed
- \`structured\`: a schema with bounds such as \`maxLength\`
- \`reasoning\`: \`tools\` with thinking, which the client must send back unchanged
- \`tools, Gemini\`: the client must send back the \`thought_signature\`
`

/** The findings that were made by hand. */
const TAIL = `
For Claude Code and Codex, the test sends requests as these versions do.

## Agents on the command line

These were run by hand, on the same stand-ins: a question, a call of a tool, its result and the answer, all streamed. – was not run.

|agent|openai|open-models|anthropic|settings|
|-|-|-|-|-|
|Claude Code 2.1.332|✓|✓|✓|\`ANTHROPIC_BASE_URL\` without \`/v1\`, \`ANTHROPIC_API_KEY\`|
|Codex 0.171.0|✓|✓ (a)|✓|\`[model_providers.x]\` with \`base_url\` (\`…/v1\`), \`env_key\`, \`wire_api = "responses"\`|
|opencode 1.18.33|✓ (b)|✓|✓|a provider with \`"npm": "@ai-sdk/openai-compatible"\` and \`baseURL\` (\`…/v1\`)|
|Qwen Code 0.24.4|(c)|✓|✓|\`--auth-type openai\`, \`OPENAI_BASE_URL\` (\`…/v1\`), \`OPENAI_MODEL\`|
|Cline 3.0.65|✓ (d)|✓ (d)|–|\`cline auth -p openai -b …/v1 -k KEY -m MODEL\`|

- a: Codex offers a search that these lines lack. Set \`web_search = "disabled"\`, or
  \`http_headers = { "X-Gateway-Unsupported" = "drop" }\` in the provider
- b: with \`"npm": "@ai-sdk/openai"\`. The other package sends \`max_tokens\`, which OpenAI's reasoning models refuse
- c: refused, because it sends \`max_tokens\`. Use a line of another provider, or a model that takes it
- d: in \`-y\` mode it goes on until the model calls its tool \`submit_and_exit\`

Agents that compact their context, lower \`max_tokens\` or wait after a refusal do so here too, because the gateway refuses in the
[words that they know](../lib/core/errors/README.md#words-that-clients-act-on). Codex sends a request that the account cannot pay five more
times. Claude Code assumes a window of 1,000,000 tokens for a model whose name it does not know.

## Other clients

The first two were also run by hand.

- Mastra: \`model: { id: "gateway/MODEL", url: "…/v1", apiKey }\`
- LlamaIndex: \`baseURL\`, and \`temperature: 1\` for OpenAI's reasoning models
- \`groq-sdk\`: \`baseURL\` without \`/openai/v1\`. \`@mistralai/mistralai\`: \`serverURL\` without \`/v1\`
- \`@mistralai/mistralai\` and \`@ai-sdk/xai\` \`.chat\` need streamed tool calls in one piece, as lines of Mistral and xAI send them. On other
  lines use \`@ai-sdk/mistral\` or \`@ai-sdk/xai\` \`.responses\`
- \`cohere-ai\`: use \`CohereClient\`. \`CohereClientV2\` calls \`/v2/rerank\`, which is not served
- \`@openrouter/sdk\` refuses plain answers without \`system_fingerprint\`, which some providers leave out
- \`portkey-ai\`, \`@openrouter/sdk\`: see [from Portkey and OpenRouter](from-portkey-openrouter.md)
`

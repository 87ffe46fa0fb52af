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

/** The findings that were made by hand. */
const TAIL = `
Claude Code and Codex are too large to be installed for each run of the tests: what stands in the table are requests of the form that these
versions send.

## Agents on the command line

Run by hand in these versions, against the same stand-ins: a question, the call of a tool of the agent's own, its result, and the answer, all
streamed. ✓ works as it is; – was not run.

|agent|openai|open-models|anthropic|settings|
|-|-|-|-|-|
|Claude Code 2.1.332|✓|✓|✓|\`ANTHROPIC_BASE_URL\` without \`/v1\`, \`ANTHROPIC_API_KEY\`|
|Codex 0.171.0|✓|✓ (a)|✓|\`[model_providers.x]\` with \`base_url\` (\`…/v1\`), \`env_key\`, \`wire_api = "responses"\`|
|opencode 1.18.33|✓ (b)|✓|✓|a provider with \`"npm": "@ai-sdk/openai-compatible"\` and \`baseURL\` (\`…/v1\`)|
|Qwen Code 0.24.4|(c)|✓|✓|\`--auth-type openai\`, \`OPENAI_BASE_URL\` (\`…/v1\`), \`OPENAI_MODEL\`|
|Cline 3.0.65|✓ (d)|✓ (d)|–|\`cline auth -p openai -b …/v1 -k KEY -m MODEL\`|

- a: with \`web_search = "disabled"\`, or \`http_headers = { "X-Gateway-Unsupported" = "drop" }\` in the provider: it offers a search that these
  lines do not have
- b: with \`"npm": "@ai-sdk/openai"\`. The other package sends \`max_tokens\`, which OpenAI's reasoning models refuse
- c: refused, because it sends \`max_tokens\`. Use a line of another provider, or a model that takes it
- d: calls and their results; in \`-y\` mode it goes on until the model calls its tool \`submit_and_exit\`

Not run here: Kilo Code 7.8.1, whose package could not be installed, and pi 1.6.0.

What they show after a refusal by the gateway:

|agent|an empty account (402)|a context that is too long (400)|a rate limit (429)|
|-|-|-|-|
|Claude Code 2.1.332|“Credit balance is too low”|“Prompt is too long”, with the figures; a longer conversation is compacted|waits and tries again|
|Codex 0.171.0|the message, after it has sent the request five more times|the message|waits and tries again|
|opencode 1.18.33|the message|the message|–|

Claude Code assumes a window of 1,000,000 tokens for a model whose name it does not know.

## Others

Run by hand against the same stand-ins, on all three, with a question, tools and a stream:

- Claude Agent SDK 0.3.332: the variables of Claude Code in \`env\`
- Mastra, \`@mastra/core\` 1.71.0, also with a schema: \`model: { id: "gateway/MODEL", url: "…/v1", apiKey }\`
- LlamaIndex, \`@llamaindex/openai\` 0.4.23: \`baseURL\`, and \`temperature: 1\` for OpenAI's reasoning models

In earlier versions: Kilo Code, Continue, LangGraph, Genkit, and the SDKs of Together and Mistral. To know:

- \`groq-sdk\`: \`baseURL\` without \`/openai/v1\`. \`@mistralai/mistralai\`: \`serverURL\` without \`/v1\`
- \`@mistralai/mistralai\`, \`@ai-sdk/xai\` \`.chat\`: a streamed tool call must come in one piece, as from lines of Mistral's and xAI's. On others
  use \`@ai-sdk/mistral\`, \`@ai-sdk/xai\` \`.responses\`
- \`cohere-ai\`: \`CohereClient\`. \`CohereClientV2\` calls \`/v2/rerank\`, which is not served
- \`@openrouter/sdk\` refuses plain answers without \`system_fingerprint\`, which some providers leave out
- \`portkey-ai\`, \`@openrouter/sdk\`: see [from Portkey and OpenRouter](from-portkey-openrouter.md)

## After a refusal

Agents that compact their context, lower \`max_tokens\` or leave out thinking blocks after a refusal do so here, too: the gateway refuses
in the [words that clients act on](../lib/core/errors/README.md#words-that-clients-act-on), whichever provider serves the model.
`

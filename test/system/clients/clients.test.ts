import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { cleaningUp } from '../../support/clean-up.ts'
import { type Cell, failureOf, wordsOf } from './cells.ts'
import { exceptionOf, forgets, idOf } from './expectations.ts'
import { AI_SDK } from './frameworks/ai-sdk.ts'
import { ANTHROPIC } from './frameworks/anthropic-sdk.ts'
import { CLAUDE_CODE } from './frameworks/claude-code.ts'
import { CODEX } from './frameworks/codex.ts'
import type { Framework } from './frameworks/framework.ts'
import { GROQ } from './frameworks/groq-sdk.ts'
import { LANGCHAIN } from './frameworks/langchain.ts'
import { AGENTS } from './frameworks/openai-agents.ts'
import { OPENAI } from './frameworks/openai-sdk.ts'
import { OPENROUTER } from './frameworks/openrouter-sdk.ts'
import { LINES, type LineKind, startLineGateway } from './gateways.ts'
import { pageOf } from './page.ts'
import { SCENARIOS, type Scenario } from './scenarios.ts'

const FRAMEWORKS = [
  ...OPENAI,
  ...ANTHROPIC,
  ...AI_SDK,
  ...OPENROUTER,
  ...GROQ,
  ...LANGCHAIN,
  ...AGENTS,
  ...CLAUDE_CODE,
  ...CODEX,
]
const PAGE = fileURLToPath(new URL('../../../docs/clients.md', import.meta.url))
const LINE_KINDS = Object.keys(LINES) as LineKind[]
/** The cells that came out as is expected of them. */
const found = new Set<Cell>()

const scenariosOf = ({ cannot = [] }: Framework, line: LineKind): readonly Scenario[] =>
  // Its loop of tools is what distinguishes it.
  line === 'gemini' ? ['tools'] : SCENARIOS.filter((scenario) => !cannot.includes(scenario))

const cells: readonly Cell[] = LINE_KINDS.flatMap((line) =>
  FRAMEWORKS.flatMap((framework) =>
    scenariosOf(framework, line).map((scenario) => ({
      framework,
      line,
      scenario,
      exception: exceptionOf(framework, line, scenario),
      forgets: forgets(framework, line),
    })),
  ),
)
/** Each run of a cell has a key of its own, and with it an account. */
const keyOf = (cell: Cell, isSet: boolean) => `sk-${cells.indexOf(cell)}-${isSet}`

const doesOf = ({ exception }: Cell) => {
  if (!exception) return 'works'
  return exception.setting ? `works with ${exception.setting}` : 'is refused'
}

for (const line of LINE_KINDS) {
  describe(`on a line of ${line}`, async () => {
    const ofLine = cells.filter((cell) => cell.line === line)
    const keys = ofLine.flatMap((cell) => [keyOf(cell, false), keyOf(cell, true)])
    const gateway = await startLineGateway(line, keys, cleaningUp())
    for (const cell of ofLine) {
      it(`${idOf(cell.framework)}: ${cell.scenario} ${doesOf(cell)}`, async () => {
        const { exception } = cell
        const error = await failureOf(cell, gateway, keyOf(cell, false), false)
        if (!exception && error) throw error
        if (exception) {
          assert.ok(wordsOf(error).includes(exception.refused), wordsOf(error))
          const [reason = ''] = gateway.twin.refusals
          assert.ok(exception.because ? reason.includes(exception.because) : reason === '', reason)
        }
        const second = exception?.setting && (await failureOf(cell, gateway, keyOf(cell, true), true))
        if (second) throw second
        found.add(cell)
      })
    }
  })
}

describe('docs/clients.md', () => {
  it('says what was found; run this file with --write to make it', () => {
    const missing = cells.filter((cell) => !found.has(cell))
    assert.equal(missing.length, 0, 'not all cells came out as expected')
    const page = pageOf(FRAMEWORKS, cells)
    if (process.argv.includes('--write')) writeFileSync(PAGE, page)
    assert.equal(readFileSync(PAGE, 'utf8'), page)
  })
})

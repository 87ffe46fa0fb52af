import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { it } from 'node:test'
import { ERROR_CODE_NAMES, type ErrorCode, errorRow, GatewayError } from '../../../lib/core/errors/index.ts'
import { PROTOCOLS, type ProtocolName } from '../../../lib/core/protocols/index.ts'

const readme = readFileSync(new URL('../../../lib/core/errors/README.md', import.meta.url), 'utf8')

const HEAD = ['| code | HTTP | tier | `x-should-retry` | `error.type` |', `|${'---|'.repeat(5)}`]

/** One row for all codes that are answered alike, where the first of them stands. */
function rows(): string[] {
  const alike = Map.groupBy(ERROR_CODE_NAMES, answerOf)
  return [...alike].map(
    ([answer, codes]) => `| ${codes.map((code) => `\`${code}\``).join(', ')} | ${answer} |`,
  )
}

function answerOf(code: ErrorCode): string {
  const { status, tier } = errorRow(code)
  const shouldRetry = new GatewayError(code).headers['x-should-retry'] ?? '–'
  return [status, tier, shouldRetry, typesOf(code)].join(' | ')
}

/** The type of all protocols, or behind a comma that of Anthropic where it is another. */
function typesOf(code: ErrorCode): string {
  return [...new Set([typeOf('openai', code), typeOf('anthropic', code)])].join(', ')
}

function typeOf(protocol: ProtocolName, code: ErrorCode): string {
  const body = PROTOCOLS[protocol].errorBody(new GatewayError(code), 'req_1') as { error: { type: string } }
  return body.error.type
}

it('the table of the README is that of the code', () => {
  const expected = [...HEAD, ...rows()].join('\n')
  const written = /^\| code \|.*(?:\n\|.*)*/m.exec(readme)?.[0]
  assert.equal(written, expected, `lib/core/errors/README.md must hold this table:\n${expected}\n`)
})

it('protocols that share a column have the same errors', () => {
  for (const code of ERROR_CODE_NAMES) assert.equal(typeOf('ark', code), typeOf('openai', code), code)
})

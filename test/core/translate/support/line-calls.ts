import assert from 'node:assert/strict'
import { type JsonObject, objectsIn } from '../../../../lib/core/json/index.ts'

/** A call with the token in its arguments, by which it is known whatever its id. Its result is `result of <token>`. */
export interface Call {
  readonly id: string
  readonly token: string
}

export const tokenOf = (args: unknown): string =>
  String((typeof args === 'string' ? JSON.parse(args) : (args as JsonObject)).t)

/** The calls of a conversation as a chat line gets it, after a look whether each result follows its call directly. */
export function callsOnChatLine(turns: readonly JsonObject[]): Call[] {
  const seen: Call[] = []
  for (const [i, { role, tool_calls: calls }] of turns.entries()) {
    if (role !== 'assistant') continue
    const made = objectsIn(calls).map(({ id, function: fn }) => ({
      id: String(id),
      token: tokenOf((fn as JsonObject).arguments),
    }))
    const results = turns.slice(i + 1, i + 1 + made.length)
    for (const { role: of } of results) assert.equal(of, 'tool', 'each result follows its call directly')
    const pairs = results.map(({ tool_call_id: id, content }) => `${String(id)} ${String(content)}`)
    assert.deepEqual(pairs.sort(), made.map(({ id, token }) => `${id} result of ${token}`).sort())
    assert.notEqual(turns[i + 1 + made.length]?.role, 'tool')
    seen.push(...made)
  }
  return seen
}

/** The calls of a conversation as an Anthropic-style line gets it, after a look at its rules. */
export function callsOnAnthropicLine(turns: readonly JsonObject[]): Call[] {
  const seen: Call[] = []
  for (const [i, { role, content }] of turns.entries()) {
    assert.equal(role, i % 2 === 0 ? 'user' : 'assistant')
    const made = objectsIn(content)
      .filter(({ type }) => type === 'tool_use')
      .map(({ id, input }) => ({ id: String(id), token: tokenOf(input) }))
    if (made.length === 0) continue
    const results = objectsIn(turns[i + 1]?.content).slice(0, made.length)
    const pairs = results.map(({ tool_use_id: id, content: text }) => `${String(id)} ${String(text)}`)
    assert.deepEqual(pairs.sort(), made.map(({ id, token }) => `${id} result of ${token}`).sort())
    seen.push(...made)
  }
  for (const { id } of seen) assert.match(id, /^[a-zA-Z0-9_-]+$/)
  assert.equal(new Set(seen.map(({ id }) => id)).size, seen.length, 'no id stands twice')
  return seen
}

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readEntry, writeEntry } from '../../../../lib/stores/sql/calls/written-entry.ts'

const USUAL = readEntry('{"routing":{"attempts":[{}]},"request":{},"usage":{},"billing":{}}')
const OTHERS: readonly unknown[] = [null, '', 'text "\\\u0000漢', 0, -1, 404, true, false]

/** The same entry or part of it with another value of one member, at every depth. */
function* changed<T>(given: T): Generator<T> {
  if (typeof given !== 'object' || given === null) return
  for (const [name, member] of Object.entries(given)) {
    if (!Array.isArray(given)) for (const other of othersOf(member)) yield withMember(given, name, other)
    for (const other of changed(member)) yield withMember(given, name, other)
  }
}

/** A part may be missing, a list is one. */
function othersOf(member: unknown): readonly unknown[] {
  if (Array.isArray(member)) return []
  return typeof member === 'object' && member !== null && Object.keys(member).length > 0 ? [null] : OTHERS
}

function withMember<T extends object>(given: T, name: string, member: unknown): T {
  if (!Array.isArray(given)) return { ...given, [name]: member }
  return given.with(Number(name), member) as unknown as T
}

describe('the text of an entry in its row', () => {
  it('is read as it was written, whichever member differs from the usual', () => {
    // The answer has a column of its own.
    const entries = [...changed(USUAL)].map((entry) => ({ ...entry, response_body: null }))
    assert.ok(entries.length > 300, `${entries.length}`)
    for (const entry of entries)
      assert.equal(JSON.stringify(readEntry(writeEntry(entry))), JSON.stringify(entry))
  })

  it('keeps members that only some entries have', () => {
    const entry = { ...USUAL, guards: [], cache: 'hit' as const, repeats: 2, response_body_parts: 3 }
    assert.deepEqual(readEntry(writeEntry(entry)), entry)
  })

  it('has nothing that is usual, nor the answer', () => {
    assert.equal(
      writeEntry({ ...USUAL, id: 'req_1', response_body: 'answer' }),
      '{"id":"req_1","request":{},"routing":{"attempts":[{}]},"usage":{},"billing":{}}',
    )
  })
})

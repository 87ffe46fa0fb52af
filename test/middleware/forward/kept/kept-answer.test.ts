import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '../../../../lib/core/json/index.ts'
import { idOf, madeBy, yieldedBy, yieldsThings } from '../../../../lib/middleware/forward/kept/kept-answer.ts'

const file = (id: string) => ({ kind: 'file', id })

/** What the answer about a thing names that was made of it. */
const YIELDED: readonly (readonly [kind: string, answer: JsonObject, files: readonly string[]])[] = [
  ['batch', { output_file_id: 'out', error_file_id: 'err' }, ['out', 'err']],
  ['batch', { output_file_id: 'out', error_file_id: null }, ['out']],
  ['batch', { output_file_id: null, error_file_id: 'err' }, ['err']],
  ['batch', { output_file_id: { id: 'out' } }, ['out']],
  [
    'batch',
    { output_file_id: 7, error_file_id: {}, input_file_id: 'in', file: 'f', result_files: ['f'] },
    [],
  ],
  ['fine_tuning_job', { result_files: ['a', 'b'], training_file: 't' }, ['a', 'b']],
  ['fine_tuning_job', { result_files: [] }, []],
  ['fine_tuning_job', { result_files: ['a', null, 7, { id: 'b' }] }, ['a']],
  ['fine_tuning_job', { result_files: 'a' }, ['a']],
  ['upload', { file: { id: 'f', object: 'file' } }, ['f']],
  ['upload', { file: 'f' }, ['f']],
  ['upload', { file: null }, []],
  ['upload', {}, []],
]

describe('what an answer says that was made of a thing', () => {
  for (const [kind, answer, files] of YIELDED)
    it(`is the files of a ${kind}: ${JSON.stringify(answer)}`, () => {
      assert.deepEqual(yieldedBy(answer, kind), files.map(file))
      const id = { id: 'thing' }
      assert.deepEqual(madeBy({ ...answer, ...id }, kind), [{ kind, ...id }, ...files.map(file)])
      assert.deepEqual(madeBy(answer, kind), files.map(file), 'no id')
    })

  it('is nothing of other kinds', () => {
    const names = { output_file_id: 'o', error_file_id: 'e', result_files: ['r'], file: { id: 'f' } }
    for (const kind of ['', 'file', 'response', 'message_batch', 'toString', 'constructor']) {
      assert.equal(yieldsThings(kind), false, kind)
      assert.deepEqual(yieldedBy(names, kind), [], kind)
    }
    for (const [kind] of YIELDED) assert.equal(yieldsThings(kind), true, kind)
  })

  it('is nothing of what is no object', () => {
    for (const answer of [undefined, null, 'batch', 7, true, [{ id: 'a', output_file_id: 'o' }]]) {
      assert.deepEqual(yieldedBy(answer, 'batch'), [], String(answer))
      assert.deepEqual(madeBy(answer, 'batch'), [], String(answer))
    }
  })
})

describe('what the answer to a create names', () => {
  it('is the new thing, under its id or, at Google, its name', () => {
    const rows: [answer: JsonObject, id: string | undefined][] = [
      [{ id: 'a' }, 'a'],
      [{ id: 'a', name: 'cachedContents/b' }, 'a'],
      [{ name: 'cachedContents/b' }, 'cachedContents/b'],
      [{ name: 'plain' }, undefined],
      [{ name: '/b' }, undefined],
      [{ name: 'my file/b' }, undefined],
      [{ name: 7 }, undefined],
      [{ id: 7, name: 'files/b' }, 'files/b'],
      [{}, undefined],
    ]
    for (const [answer, id] of rows) {
      assert.equal(idOf(answer), id, JSON.stringify(answer))
      const made = id === undefined ? [] : [{ kind: 'vector_store', id }]
      assert.deepEqual(madeBy(answer, 'vector_store'), made, JSON.stringify(answer))
    }
  })

  it('is the thread, where a run of a new one is made, and not the run', () => {
    const run = { id: 'run_1', thread_id: 'thread_1' }
    assert.deepEqual(madeBy(run, 'thread'), [{ kind: 'thread', id: 'thread_1' }])
    assert.deepEqual(madeBy({ id: 'thread_1' }, 'thread'), [{ kind: 'thread', id: 'thread_1' }])
    assert.deepEqual(madeBy({ name: 'threads/t' }, 'thread'), [])
    assert.deepEqual(madeBy(run, 'session'), [{ kind: 'session', id: 'run_1' }])
  })

  it('ends when the line says that it deletes it, for a file', () => {
    const made = (kind: string, expiresAt: unknown) => madeBy({ id: 'a', expires_at: expiresAt }, kind)
    assert.deepEqual(made('file', 1_700_000_000), [{ ...file('a'), expiresAt: 1_700_000_000_000 }])
    for (const never of [null, undefined, 0, '1700000000', -1])
      assert.deepEqual(made('file', never), [file('a')], String(never))
    for (const kind of ['upload', 'vector_store', 'batch'])
      assert.deepEqual(made(kind, 1_700_000_000), [{ kind, id: 'a' }], 'its own end is not that of the thing')
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { refuseForeignRows } from '../../../../lib/middleware/forward/kept/own-rows.ts'

describe('the rows of an eval’s run', () => {
  it('may be sent, or come from a file, or from nowhere', () => {
    for (const data_source of [
      { source: { type: 'file_content' } },
      { source: { type: 'file_id', id: 'f' } },
      { source: 'file' },
      { source: null },
      { type: 'jsonl' },
      [],
      'rows',
      undefined,
    ])
      assert.doesNotThrow(() => refuseForeignRows({ data_source }), JSON.stringify(data_source))
  })

  it('are refused from any other source', () => {
    for (const type of ['stored_completions', 'responses', '', 'FILE_ID', 7, null, undefined])
      assert.throws(
        () => refuseForeignRows({ data_source: { source: { type } } }),
        { code: 'unsupported_feature', param: 'data_source.source' },
        String(type),
      )
  })
})

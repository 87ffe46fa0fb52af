import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { pathFault } from '../../../lib/core/config/pass-through-path.ts'

describe('a pass-through path', () => {
  it('begins like the gateway’s own paths, and may have placeholders and one rest', () => {
    const fit = [
      '/v1/FILES/:Id/*Rest',
      '/v1/a.b~c-d_e',
      '/v1/x/:_x',
      '/api/v3/x',
      '/v1/audio/*_r',
      '/v1/a/:b/:c/:d/:e',
    ]
    for (const path of fit) assert.equal(pathFault(path), undefined, path)
    for (const path of ['x/v1/files', '/API/v3/x', '/V1/files', '/v1', '/api/v2/x', '/v11/x'])
      assert.equal(pathFault(path), 'must begin with /v1/ or /api/v3/', path)
    for (const path of [
      '/v1/:1',
      '/v1/*1',
      '/v1//a',
      '/v1/a/',
      '/v1/a/*r/b',
      '/v1/a b',
      '/v1/a/:',
      '/v1/a\n',
    ])
      assert.match(pathFault(path) ?? '', /^must be a path such as/, path)
  })

  it('matches no request that the gateway serves itself', () => {
    const rows: [path: string, own: string | undefined][] = [
      ['/v1/chat/completions', 'v1/chat/completions'],
      ['/v1/chat/completions/x', undefined],
      ['/v1/chat', undefined],
      ['/v1/CHAT/:x', 'v1/chat/completions'],
      ['/v1/responses/:x', 'v1/responses/:id'],
      ['/v1/responses/a/b', 'v1/responses/:id/:part'],
      ['/v1/responses/a/b/c', undefined],
      ['/v1/responses/*r', 'v1/responses/:id'],
      ['/v1/messages/count_tokens', 'v1/messages/count_tokens'],
      ['/v1/messages/batches', undefined],
      ['/v1/videos/a/b/c', 'v1/videos/*rest'],
      ['/v1/models/a', 'v1/models/*rest'],
      ['/v1/calls/a', 'v1/calls/*rest'],
      ['/v1/tickets/a', 'v1/tickets/*rest'],
      ['/api/v3/contents/generations/tasks/a', 'api/v3/contents/generations/tasks/*rest'],
      ['/api/v3/contents/generations/other', undefined],
      ['/v1/usage', 'v1/usage'],
      ['/v1/usage/x', undefined],
    ]
    for (const name of [
      'completions',
      'embeddings',
      'rerank',
      'messages',
      'videos',
      'models',
      'calls',
      'account',
      'tickets',
    ])
      rows.push([`/v1/${name}`, `v1/${name}`])
    for (const name of ['images/generations', 'images/edits', 'responses'])
      rows.push([`/v1/${name}`, `v1/${name}`])
    rows.push(['/api/v3/contents/generations/tasks', 'api/v3/contents/generations/tasks'])
    for (const [path, own] of rows)
      assert.equal(
        pathFault(path),
        own && `takes requests for /${own}, which the gateway answers itself`,
        path,
      )
  })
})

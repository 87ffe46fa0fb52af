import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { relayPath } from '../../../lib/middleware/forward/relay-path.ts'

describe('the path that a line is asked for', () => {
  it('is what stands behind the version, with the query', () => {
    const rows: [url: string, path: string][] = [
      ['/v1/files', '/files'],
      ['/v1/files?limit=1&after=/../x', '/files?limit=1&after=/../x'],
      ['/v1/files?', '/files?'],
      ['/api/v3/files/1', '/files/1'],
      ['/llm/v1/files', '/files'],
      ['/llm/API/V3/files', '/files'],
      ['/V1/files', '/files'],
      ['/v1/v1/files', '/v1/files'],
      ['/v10/files', '/v10/files'],
      ['/v1', '/v1'],
      ['/v1/a.b/..c/...', '/a.b/..c/...'],
      ['/v1/%20a%25b', '/%20a%25b'],
      ['/v1/a;b', '/a;b'],
      ['/v1/files/', '/files/'],
    ]
    for (const [url, path] of rows) assert.equal(relayPath(url), path, url)
  })

  it('is none where an upstream could read another place in it', () => {
    const urls = [
      '',
      'v1/files',
      'http://x/v1/files',
      '/v1/files#x',
      '/v1/files\\x',
      '/v1/files?a=\\',
      '/v1/.',
      '/v1/..',
      '/v1/../admin',
      '/v1/./files',
      '/v1/..;/admin',
      '/v1/.;a=b/admin',
      '/v1/%2e%2e/admin',
      '/v1/%2E/files',
      '/v1/a%2fb',
      '/v1/a%2Fb',
      '/v1/a%5cb',
      '/v1/a%252fb',
      '/v1/a%25252eb',
      '/v1/a%255cb',
      '/v1/a%00',
      '/v1/a%0ab',
      '/v1/a%1fb',
      '/v1/a%7f',
      '/v1/a%',
      '/v1/a%c3%28',
    ]
    for (const url of urls) assert.equal(relayPath(url), undefined, url)
  })
})

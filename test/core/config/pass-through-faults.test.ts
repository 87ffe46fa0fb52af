import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ConfigError } from '../../../lib/core/config/index.ts'
import { OPERATIONS } from '../../../lib/core/operations/index.ts'
import { openApiDocument } from '../../../lib/management/openapi/index.ts'
import { loadConfig } from '../../support/any-config.ts'

const config = (...passThrough: unknown[]) => ({
  models: [{ id: 'm', kind: 'chat' }],
  lines: [{ id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'http://x/v1', models: { m: 'u' } }],
  passThrough,
})

function faultsOf(...rules: unknown[]): readonly string[] {
  try {
    loadConfig(config(...rules))
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    return error.faults
  }
}

describe('the pass-through rules of a config', () => {
  it('may contain any path that the gateway does not serve itself', () => {
    const paths = [
      '/v1/files',
      '/v1/files/:id/content',
      '/v1/files/*rest',
      '/v1/audio/*rest',
      '/v1/realtime',
      '/v1/images/variations',
      '/v1/messages/batches',
      '/api/v3/files',
    ]
    assert.deepEqual(faultsOf(...paths.map((path) => ({ path, lines: ['l'] }))), [])
  })

  const { paths } = openApiDocument({ version: '0', operations: OPERATIONS })
  const own = Object.keys(paths ?? {}).filter((path) => /^\/(?:v1|api)\//.test(path))
  it('are tested against more than 25 paths of the gateway', () => assert.ok(own.length > 25))

  const TAKEN = [
    ...own.map((path) => path.replaceAll(/\{(\w+)\}/g, ':$1')),
    '/v1/Chat/Completions',
    '/v1/:anything',
    '/v1/*rest',
    '/v1/chat/*rest',
    '/v1/:kind/completions',
    '/v1/models/*rest',
    '/api/v3/*rest',
  ]
  for (const path of TAKEN) {
    it(`may not take over ${path}`, () => {
      const faults = faultsOf({ path, lines: ['l'] })
      assert.equal(faults.length, 1)
      assert.match(
        faults[0] ?? '',
        /^passThrough\[0\]\.path: takes requests for \/\S+, which the gateway answers/,
      )
    })
  }

  for (const path of ['/admin', '/admin/*rest', '/healthz', '/files', '/', '/v1', '/v10/files', '/*rest']) {
    it(`cannot contain a path that needs no key: ${path}`, () => {
      assert.deepEqual(faultsOf({ path, lines: ['l'] }), [
        'passThrough[0].path: must begin with /v1/ or /api/v3/',
      ])
    })
  }

  for (const path of [
    '/v1/',
    '/v1/files/',
    '/v1/*rest/x',
    '/v1/fi*les',
    '/v1/*',
    '/v1/a b',
    '/v1/{x}',
    '/v1/a?b',
  ]) {
    it(`have paths of one form: ${path}`, () => {
      assert.deepEqual(faultsOf({ path, lines: ['l'] }), [
        'passThrough[0].path: must be a path such as /v1/files, /v1/files/:id or /v1/audio/*rest',
      ])
    })
  }

  it('must name existing lines or an existing model, and each path once', () => {
    const path = '/v1/files'
    assert.deepEqual(faultsOf({ path, lines: ['l', 'none'] }), [
      'passThrough[0].lines[1]: there is no line "none"',
    ])
    assert.deepEqual(faultsOf({ path, model: 'none' }), ['passThrough[0].model: there is no model "none"'])
    assert.deepEqual(faultsOf({ path, model: 'm', lines: ['l'] }), [
      'passThrough[0]: needs either "lines" or "model"',
    ])
    assert.deepEqual(faultsOf({ path, lines: ['l'] }, { path, lines: ['l'] }), [
      'passThrough[1].path: is the same as that of passThrough[0]',
    ])
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { z } from 'zod'
import { ConfigError, configJsonSchema } from '../../../lib/core/config/index.ts'
import { embeddings } from '../../../lib/core/operations/embeddings.ts'
import { chatCompletions, messages } from '../../../lib/core/operations/index.ts'
import { dialectPath, pathOn } from '../../../lib/routing/attempt/upstream-path.ts'
import { loadConfig } from '../../support/any-config.ts'
import { configWith, LINE } from './config.ts'

const withLine = (extra: object) => configWith({ lines: [{ ...LINE, ...extra }] })

function lineOf(extra: object, env = {}) {
  const [line] = loadConfig(withLine(extra), env).catalog.lines
  assert.ok(line)
  return line
}

function faultsOf(extra: object): readonly string[] {
  try {
    loadConfig(withLine(extra))
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    return error.faults
  }
}

describe('the path of a request to a line', () => {
  const MODEL = 'org/gpt 4:o@1?%#&é'
  const ENCODED = 'org%2Fgpt%204%3Ao%401%3F%25%23%26%C3%A9'
  const rows: [extra: object, plain: string, stream: string][] = [
    [{}, '/v1/chat/completions', '/v1/chat/completions'],
    [{ query: { 'api-version': '2024-10-21' } }, ...twice('/v1/chat/completions?api-version=2024-10-21')],
    [{ query: { 'a b': 'c&d=é', x: '' } }, ...twice('/v1/chat/completions?a%20b=c%26d%3D%C3%A9&x=')],
    [{ path: '/deployments/{model}/{endpoint}' }, ...twice(`/v1/deployments/${ENCODED}/chat/completions`)],
    [{ path: { 'chat/completions': '/m/{model}:go' } }, ...twice(`/v1/m/${ENCODED}:go`)],
    [{ path: { embeddings: '/m/{model}' } }, ...twice('/v1/chat/completions')],
    [
      { path: { 'chat/completions': { plain: '/{model}/a', stream: '/{model}/b' } }, query: { v: '1' } },
      `/v1/${ENCODED}/a?v=1`,
      `/v1/${ENCODED}/b?v=1`,
    ],
  ]
  for (const [extra, plain, stream] of rows)
    it(`is as the line says: ${JSON.stringify(extra)}`, () => {
      const line = lineOf(extra)
      assert.equal(dialectPath(line, chatCompletions, MODEL, false), plain)
      assert.equal(dialectPath(line, chatCompletions, MODEL, true), stream)
    })

  it('contains the endpoint if one template serves several', () => {
    const line = lineOf({ path: '/d/{model}/{endpoint}' })
    assert.equal(dialectPath(line, embeddings, 'e', false), '/v1/d/e/embeddings')
    const anthropic = lineOf({ protocol: 'anthropic', path: '/d/{endpoint}' })
    assert.equal(dialectPath(anthropic, messages, 'e', false), '/v1/d/messages')
  })

  it('encodes any model name so that it is read as that name', () => {
    const line = lineOf({ path: '/{model}/x' })
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (model) => {
        const path = dialectPath(line, chatCompletions, model, false)
        assert.match(path, /^\/v1\/[\w%.~!*'()-]*\/x$/)
        assert.equal(decodeURIComponent(path.slice('/v1/'.length, -'/x'.length)), model)
      }),
    )
  })

  it('keeps its query, except for the members that the line sets itself', () => {
    const line = lineOf({ query: { 'api-version': 'v1', key: 'k' } })
    assert.equal(pathOn(line, '/files'), '/v1/files?api-version=v1&key=k')
    assert.equal(pathOn(line, '/files?'), '/v1/files?api-version=v1&key=k')
    assert.equal(
      pathOn(line, '/files?after=1&key=mine&api%2Dversion=0&keys=2&&key'),
      '/v1/files?after=1&keys=2&api-version=v1&key=k',
    )
    assert.equal(pathOn(lineOf({}), '/files?a=1'), '/v1/files?a=1')
  })
})

function twice(path: string): [string, string] {
  return [path, path]
}

describe('a difference between a line and its protocol', () => {
  it('is nothing by default: a plain line has no such member', () => {
    const line = lineOf({})
    assert.deepEqual([line.paths, line.query, line.body], [undefined, undefined, undefined])
  })

  it('may hold secrets in its query', () => {
    assert.equal(lineOf({ query: { key: 'env:K' } }, { K: 'a/b' }).query, 'key=a%2Fb')
  })

  it('changes members of bodies', () => {
    const body = { model: null, anthropic_version: 'bedrock', n: 0, deep: { a: [1, ''] }, off: false }
    assert.deepEqual(lineOf({ body }).body, {
      model: null,
      anthropic_version: '"bedrock"',
      n: '0',
      deep: '{"a":[1,""]}',
      off: 'false',
    })
  })

  const faulty: [path: string, extra: object][] = [
    ['lines[0].path', { path: 'deployments' }],
    ['lines[0].path', { path: 7 }],
    ['lines[0].path', { path: '/{deployment}' }],
    ['lines[0].path', { path: '/a?api-version=1' }],
    ['lines[0].path', { path: '/a b' }],
    ['lines[0].path', { path: '/a%2' }],
    ['lines[0].path.messages', { path: { messages: '/a' } }],
    ['lines[0].path.videos', { path: { videos: '/a' } }],
    ['lines[0].path.embeddings', { path: { embeddings: '/{models}' } }],
    ['lines[0].path', { path: { embeddings: { plain: '/a' } } }],
    ['lines[0].path.embeddings.stream', { path: { embeddings: { plain: '/a', stream: '/#' } } }],
    ['lines[0].query', { query: 'api-version=1' }],
    ['lines[0].query.v', { query: { v: 1 } }],
    ['lines[0].query.v', { query: { v: 'env:NO' } }],
    ['lines[0].body', { body: [] }],
  ]
  for (const [path, extra] of faulty)
    it(`is reported in one line that begins with ${path}: ${JSON.stringify(extra)}`, () => {
      const faults = faultsOf(extra)
      assert.equal(faults.length, 1, faults.join('\n'))
      assert.ok(faults[0]?.startsWith(`${path}: `), faults[0])
    })

  it('is known to the JSON Schema', () => {
    const schema = z.fromJSONSchema({ ...configJsonSchema() })
    const good = { path: { embeddings: { plain: '/a', stream: '/b' } }, query: { v: '1' }, body: { a: null } }
    assert.ok(schema.safeParse(withLine(good)).success)
    assert.ok(schema.safeParse(withLine({ path: '/{model}' })).success)
    assert.equal(schema.safeParse(withLine({ query: { v: 1 } })).success, false)
  })
})

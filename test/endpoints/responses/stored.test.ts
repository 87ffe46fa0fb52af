import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { MemoryResourceStore } from '../../../lib/middleware/references/index.ts'
import { KEY } from '../../support/gateway.ts'
import { startKeepingUpstream } from '../../support/responses-upstream.ts'
import { answerJson } from '../../support/scripted-upstream.ts'
import { idOf, OTHER_KEY, responsesGateway } from './accounts.ts'

/** A gateway over one line, with a response that this has made. */
async function withResponse(t: TestContext, config: Record<string, unknown> = {}) {
  const upstream = await startKeepingUpstream('one')
  t.after(() => upstream.close())
  const store = new MemoryResourceStore()
  const gateway = await responsesGateway(t, {
    lines: [{ url: upstream.url, headers: { 'x-project': 'p1' } }],
    resourceStore: store,
    config,
  })
  const created = await gateway.create()
  upstream.requests.length = 0
  return { upstream, gateway, store, created, id: idOf(created) }
}

describe('a stored response', () => {
  it('is retrieved from the line that made it, with that line’s own credentials and no body', async (t) => {
    const { gateway, upstream, id, created } = await withResponse(t)
    const answer = await gateway.ask('GET', id)
    assert.equal(answer.status, 200)
    assert.deepEqual(answer.json, created.json)
    const [asked] = upstream.requests
    assert.equal(asked?.method, 'GET')
    assert.equal(asked?.path, `/v1/responses/${id}`)
    assert.equal(asked?.headers.authorization, 'Bearer upstream-key-0')
    assert.equal(asked?.headers['x-project'], 'p1')
    assert.equal(asked?.headers['content-type'], undefined)
    assert.equal(asked?.raw.length, 0)
  })

  it('is logged with its model and its attempt, and uses nothing', async (t) => {
    const { gateway, id } = await withResponse(t)
    const entry = await gateway.entry((await gateway.ask('GET', id)).requestId)
    assert.equal(entry.method, 'GET')
    assert.equal(entry.model, 'chat')
    assert.equal(entry.account, 'acme')
    assert.equal(entry.outcome, 'completed')
    assert.equal(entry.usage, null)
    assert.equal(entry.billing, null)
    assert.deepEqual(
      entry.routing?.attempts.map(({ line, outcome, upstream_status: status }) => [line, outcome, status]),
      [['line-0', 'completed', 200]],
    )
  })

  it('is deleted once: upstream and here', async (t) => {
    const { gateway, upstream, store, id } = await withResponse(t)
    const answer = await gateway.ask('DELETE', id)
    assert.deepEqual(answer.json, { id, object: 'response.deleted', deleted: true })
    assert.equal(upstream.kept.size, 0)
    assert.deepEqual(await store.find('acme', [{ kind: 'response', id }]), [])
    for (const method of ['GET', 'DELETE']) assert.equal((await gateway.ask(method, id)).status, 404)
    assert.equal((await gateway.create({ previous_response_id: id })).errorCode, 'not_found')
    assert.equal(upstream.requests.length, 1)
  })

  it('that could not be deleted is still known', async (t) => {
    const { gateway, upstream, id } = await withResponse(t)
    const { script } = upstream
    upstream.script = (res) => answerJson(res, 500, { error: { message: 'UPSTREAM-SECRET' } })
    const failed = await gateway.ask('DELETE', id)
    assert.equal(failed.errorCode, 'upstream_error')
    assert.doesNotMatch(failed.text, /UPSTREAM-SECRET/)
    upstream.script = script
    assert.equal((await gateway.ask('GET', id)).status, 200)
  })

  it('returns its input', async (t) => {
    const { gateway, upstream, id } = await withResponse(t)
    const answer = await gateway.ask('GET', `${id}/input_items?limit=5&order=asc&api-version=1`)
    assert.equal((answer.json as { object: string }).object, 'list')
    assert.equal(upstream.requests[0]?.path, `/v1/responses/${id}/input_items?limit=5&order=asc`)
  })

  it('is asked for with what the caller wants included', async (t) => {
    const { gateway, upstream, id } = await withResponse(t)
    await gateway.ask('GET', `${id}?include[]=reasoning.encrypted_content&stream=false&key=x`)
    assert.equal(
      decodeURIComponent(upstream.requests[0]?.path ?? ''),
      `/v1/responses/${id}?include[]=reasoning.encrypted_content`,
    )
  })

  for (const query of ['stream=true', 'starting_after=3']) {
    it(`is not streamed again: ${query}`, async (t) => {
      const { gateway, upstream, id } = await withResponse(t)
      const answer = await gateway.ask('GET', `${id}?${query}`)
      assert.equal(answer.status, 400)
      assert.equal(answer.errorCode, 'unsupported_feature')
      assert.equal(answer.envelope().error.param, 'stream')
      assert.equal(upstream.requests.length, 0)
    })
  }

  it('does not run in the background, so that there is nothing to cancel', async (t) => {
    const { gateway, upstream, id } = await withResponse(t)
    const answer = await gateway.ask('POST', `${id}/cancel`)
    assert.equal(answer.status, 409)
    assert.equal(answer.errorCode, 'conflict')
    assert.equal((await gateway.ask('POST', `${id}/cancel`, OTHER_KEY)).errorCode, 'not_found')
    assert.equal(upstream.requests.length, 0)
  })

  it('of another account is not found, whatever is asked about it', async (t) => {
    const { gateway, upstream, id } = await withResponse(t)
    for (const [method, rest] of [
      ['GET', id],
      ['DELETE', id],
      ['GET', `${id}/input_items`],
    ] as const) {
      const answer = await gateway.ask(method, rest, OTHER_KEY)
      assert.equal(answer.status, 404)
      assert.equal(answer.errorCode, 'not_found')
    }
    assert.equal(upstream.requests.length, 0)
    assert.equal((await gateway.ask('GET', id)).status, 200)
  })

  it('is not found by an invalid id, or under an invalid path', async (t) => {
    const { gateway, upstream, id } = await withResponse(t)
    for (const rest of [
      'resp_none',
      '%2e%2e',
      '..%2fmodels',
      `${id}%3Fstream=true`,
      `${id}%0d%0ax:y`,
      `${id}/other`,
    ])
      assert.equal((await gateway.ask('GET', rest)).errorCode, 'not_found', rest)
    for (const method of ['PUT', 'PATCH', 'POST'])
      assert.equal((await gateway.ask(method, id)).errorCode, 'not_found', method)
    assert.equal(upstream.requests.length, 0)
  })

  for (const [how, secret, key, code] of [
    ['no key', '', {}, 'missing_credential'],
    ['an unknown key', 'sk-nobody', {}, 'invalid_credential'],
    ['a disabled key', OTHER_KEY, { enabled: false }, 'key_disabled'],
    ['an expired key', OTHER_KEY, { expiresAt: '2020-01-01T00:00:00Z' }, 'key_expired'],
    ['a key of other addresses', OTHER_KEY, { allowIps: ['192.0.2.1'] }, 'ip_not_allowed'],
  ] as const) {
    it(`is not shown to ${how}: ${code}`, async (t) => {
      const { gateway, upstream, id } = await withResponse(t, {
        keys: [
          { id: 'key_acme', account: 'acme', secret: KEY },
          { id: 'key_other', account: 'acme', secret: OTHER_KEY, ...key },
        ],
      })
      for (const [method, rest] of [
        ['GET', id],
        ['DELETE', id],
        ['GET', `${id}/input_items`],
        ['POST', `${id}/cancel`],
      ] as const)
        assert.equal((await gateway.ask(method, rest, secret)).errorCode, code, `${method} ${rest}`)
      assert.equal(upstream.requests.length, 0)
    })
  }

  it('is not asked for outside the regions of the account', async (t) => {
    const { upstream, store, id } = await withResponse(t)
    const later = await responsesGateway(t, {
      lines: [{ url: upstream.url, region: 'us' }],
      config: { accounts: [{ id: 'acme', lineRegions: ['eu'] }, { id: 'globex' }] },
      resourceStore: store,
    })
    for (const method of ['GET', 'DELETE'])
      assert.equal((await later.ask(method, id)).errorCode, 'region_denied')
    assert.equal((await later.create({ previous_response_id: id })).errorCode, 'region_denied')
    assert.equal(upstream.requests.length, 0)
  })

  it('needs a key that may use its model', async (t) => {
    const { gateway, upstream, id } = await withResponse(t, {
      keys: [
        { id: 'key_acme', account: 'acme', secret: KEY },
        { id: 'key_few', account: 'acme', secret: OTHER_KEY, allowModels: ['other'] },
      ],
    })
    const answer = await gateway.ask('GET', id, OTHER_KEY)
    assert.equal(answer.errorCode, 'model_not_allowed')
    assert.equal(upstream.requests.length, 0)
  })

  it('is still there when its line serves the model no more', async (t) => {
    const { upstream, store, id } = await withResponse(t)
    const later = await responsesGateway(t, {
      lines: [{ url: upstream.url, models: { other: 'x' } }],
      config: { models: [{ id: 'other', kind: 'chat' }] },
      resourceStore: store,
    })
    assert.equal((await later.ask('GET', id)).status, 200)
    assert.equal((await later.ask('DELETE', id)).status, 200)
  })

  it('that its line has lost is not found, and that is not the line’s fault', async (t) => {
    const { gateway, upstream, id } = await withResponse(t)
    upstream.kept.clear()
    const answer = await gateway.ask('GET', id)
    assert.equal(answer.status, 404)
    assert.equal(answer.errorCode, 'not_found')
    const [attempt] = (await gateway.entry(answer.requestId)).routing?.attempts ?? []
    assert.equal(attempt?.upstream_status, 404)
    assert.equal(attempt?.outcome, 'not_found')
  })
})

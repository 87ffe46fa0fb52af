import assert from 'node:assert/strict'
import { it } from 'node:test'
import { intended, intentOf, NOON, taken } from '../../contracts/task-samples.ts'
import { type AdminServer, onEveryBackend } from '../admin-server.ts'

const WHO = { account: 'acme', key: 'key_acme' }

onEveryBackend('an operator resolves video tasks', (server) => {
  const resolve = (id: string, body: unknown, headers: Record<string, string> = {}) =>
    server().ask('POST', `/admin/video-tasks/${id}/resolve`, body, headers)
  const money = async () => {
    const { body } = await server().ask('GET', '/admin/accounts/acme')
    return [nanos(body.spent), nanos(body.leased)] as const
  }
  const sound = async () => {
    const { body } = await server().ask('GET', '/admin/ledger/check')
    assert.deepEqual(body.violations, [])
  }

  it('charges one in doubt what they say, once, and records who said it', async () => {
    const { id } = await inDoubt(server())
    const [spent, leased] = await money()
    const { status, body } = await resolve(
      id,
      { outcome: 'charged', amount: '0.00000006' },
      { 'x-admin-actor': 'Ada' },
    )
    assert.equal(status, 200)
    assert.deepEqual([body.state, body.held, body.charged], ['succeeded', '0', '0.00000006'])
    assert.deepEqual(await money(), [spent + 60n, leased - 85n])
    for (const again of [{ outcome: 'charged', amount: '0.00000006' }, { outcome: 'released' }]) {
      const { status, body } = await resolve(id, again)
      assert.deepEqual([status, body.error.code], [409, 'conflict'])
      assert.match(body.error.message, /settled already: it is "succeeded", and 0.00000006 was charged/)
    }
    assert.deepEqual(await money(), [spent + 60n, leased - 85n])
    const changes = await server().ask('GET', `/admin/changes?subject=${id}`)
    assert.equal(changes.body.data.length, 1)
    const { actor, action, before, after } = changes.body.data[0] as unknown as Change
    assert.deepEqual([actor, action], ['Ada', 'video_task.resolved'])
    assert.deepEqual([before.state, before.held, before.charged], ['unresolved', '0.000000085', null])
    assert.deepEqual([after.state, after.held, after.charged], ['succeeded', '0', '0.00000006'])
    await sound()
  })

  it('charges one that is stuck by what it used, at its own prices', async () => {
    const { id } = await taken(server().videoTasks, WHO)
    const [spent, leased] = await money()
    const { status, body } = await resolve(id, { outcome: 'charged', usage: { seconds: 6 } })
    assert.deepEqual([status, body.state, body.charged], [200, 'succeeded', '0.000000065'])
    assert.deepEqual(await money(), [spent + 65n, leased - 85n])
    const polled = await server().videoTasks.claimDue({
      owner: 'p',
      now: NOON * 2,
      until: NOON * 3,
      limit: 100,
    })
    assert.deepEqual(
      polled.filter((task) => task.id === id),
      [],
      'nobody polls it any more',
    )
    const late = await server().videoTasks.observe(id, { state: 'succeeded' }, NOON + 1)
    assert.equal(late?.finished, false)
    assert.deepEqual(await money(), [spent + 65n, leased - 85n])
    await sound()
  })

  it('releases one, for which nothing is charged then, even if its line reports a success', async () => {
    const { id } = await inDoubt(server())
    const [spent, leased] = await money()
    const { status, body } = await resolve(id, { outcome: 'released' })
    assert.deepEqual([status, body.state, body.held, body.charged], [200, 'failed', '0', null])
    const created = {
      upstreamId: 'up_late',
      observation: { state: 'succeeded' },
      claim: null,
      entry: null,
    } as const
    await server().videoTasks.created(id, created, NOON + 1)
    await server().videoTasks.observe(id, { state: 'succeeded' }, NOON + 2)
    assert.deepEqual(await money(), [spent, leased - 85n])
    const again = await resolve(id, { outcome: 'charged', amount: '0.00000001' })
    assert.equal(again.status, 409)
    assert.match(again.body.error.message, /it is "failed", and nothing was charged/)
    await sound()
  })

  it('takes one word of several said at once', async () => {
    const { id } = await inDoubt(server())
    const [spent, leased] = await money()
    const said = [1, 2, 3, 4].map((n) => ({ outcome: 'charged', amount: `0.00000001${n}` }))
    const answers = await Promise.all([...said, { outcome: 'released' }].map((body) => resolve(id, body)))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 409, 409, 409])
    const taken = answers.find(({ status }) => status === 200)
    const charged = nanos(taken?.body.charged ?? '0')
    assert.deepEqual(await money(), [spent + charged, leased - 85n])
    const changes = await server().ask('GET', `/admin/changes?subject=${id}`)
    assert.equal(changes.body.data.length, 1)
    await sound()
  })

  it('refuses more than is held, and one whose create is being sent', async () => {
    const { id } = await inDoubt(server())
    const sending = await intended(server().videoTasks, intentOf(WHO))
    const before = await money()
    const much = await resolve(id, { outcome: 'charged', amount: '0.000000086' })
    assert.deepEqual(
      [much.status, much.body.error.code, much.body.error.param],
      [400, 'invalid_request', 'amount'],
    )
    assert.match(much.body.error.message, /at most 0.000000085 is held/)
    for (const body of [{ outcome: 'released' }, { outcome: 'charged', amount: '0.00000001' }]) {
      const { status, body: refusal } = await resolve(sending.id, body)
      assert.deepEqual([status, refusal.error.code], [409, 'conflict'])
      assert.match(refusal.error.message, /is being sent/)
    }
    assert.deepEqual(await money(), before)
    const changes = await server().ask('GET', `/admin/changes?subject=${id}`)
    assert.deepEqual(changes.body.data, [])
    await sound()
  })

  it('refuses what it cannot read, and tasks that are not there', async () => {
    const { id } = await inDoubt(server())
    for (const [body, param] of [
      [{}, 'outcome'],
      [{ outcome: 'lost' }, 'outcome'],
      [{ outcome: 'charged' }, 'amount'],
      [{ outcome: 'charged', amount: '0' }, 'amount'],
      [{ outcome: 'charged', amount: '-1' }, 'amount'],
      [{ outcome: 'charged', amount: 1 }, 'amount'],
      [{ outcome: 'charged', amount: '0.00000001', usage: { seconds: 8 } }, 'amount'],
      [{ outcome: 'charged', usage: {} }, 'usage'],
      [{ outcome: 'charged', usage: { seconds: 0 } }, 'usage.seconds'],
      [{ outcome: 'charged', usage: { tokens: 1.5 } }, 'usage.tokens'],
      [{ outcome: 'released', amount: '1' }, 'amount'],
    ] as const) {
      const { status, body: refusal } = await resolve(id, body)
      assert.deepEqual(
        [status, refusal.error.code, refusal.error.param],
        [400, 'invalid_request', param],
        JSON.stringify(body),
      )
    }
    assert.equal((await resolve('video_none', { outcome: 'released' })).status, 404)
    const stranger = await resolve(id, { outcome: 'released' }, { authorization: 'Bearer wrong' })
    assert.equal(stranger.status, 401)
    const { body } = await server().ask('GET', `/admin/video-tasks/${id}`)
    assert.deepEqual([body.state, body.held], ['unresolved', '0.000000085'])
  })
})

interface Change {
  readonly actor: string
  readonly action: string
  readonly before: { readonly state: string; readonly held: string; readonly charged: string | null }
  readonly after: Change['before']
}

async function inDoubt({ videoTasks }: AdminServer) {
  const task = await intended(videoTasks, intentOf(WHO))
  await videoTasks.markUnresolved(task.id, NOON)
  return task
}

function nanos(amount: string): bigint {
  const [whole = '0', places = ''] = amount.split('.')
  return BigInt(whole + places.padEnd(9, '0'))
}

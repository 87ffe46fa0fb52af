import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertShows, detailOf, sectionOf, textOf, WITHOUT_CHROMIUM } from './browser.ts'
import { consoleSuite } from './console-gateway.ts'

describe('the page of a call', { skip: WITHOUT_CHROMIUM }, () => {
  const suite = consoleSuite()

  it('draws each attempt with its clocks and outcome, and shows usage and billing', async () => {
    const id = await suite.called('chat-failover', { max_tokens: 64 })
    const { page, go, close } = await suite.signedIn('key')
    await go(`/calls/${id}`)
    const rows = page.getByRole('list', { name: /^Lines in the order/ }).locator('.attempt')
    await assertShows(rows.first(), 'broken-openai')
    await assertShows(rows.first(), '500 upstream_error')
    await assertShows(rows.last(), 'demo-eu')
    await assertShows(
      rows.last(),
      /connected after [\d.]+ m?s.*first byte after [\d.]+ m?s.*ended after [\d.]+ m?s/s,
    )
    assert.equal(await rows.count(), 2)
    const left = async (row: number): Promise<number> =>
      (await rows.nth(row).locator('.edge').boundingBox())?.x ?? 0
    assert.ok((await left(0)) < (await left(1)), 'the second attempt begins behind the first')

    await assertShows(detailOf(sectionOf(page, 'Request'), 'Maximum output'), '64 tokens')
    await assertShows(detailOf(sectionOf(page, 'Usage'), 'Output'), /\d+ tokens/)
    await assertShows(detailOf(sectionOf(page, 'Billing'), 'Charged'), /^\$0\.0000\d+$/)
    await assertShows(page.getByRole('table', { name: 'Items of the charge' }), '$0.60 per million')
    await close()
  })

  it('says which condition eliminated each line, and what that means', async () => {
    const id = await suite.called('chat-small', { provider: { only: ['nobody'] } })
    const { page, go, close } = await suite.signedIn('key')
    await go(`/calls/${id}`)
    const rows = page.locator('.eliminated')
    await assertShows(rows.first(), /demo-us.*provider_constraint.*only: \["nobody"\]/s)
    assert.equal(await rows.count(), 2)
    await assertShows(page.getByRole('main'), 'usually it is the provider constraint')
    await assertShows(detailOf(sectionOf(page, 'Request'), 'Provider constraint'), '{"only":["nobody"]}')
    await close()
  })

  it('shows the limit that refused it', async () => {
    await suite.admin('POST', '/accounts', { id: 'small', prepaid: false, limits: { rpm: 1 } })
    const { secret } = await suite.admin<{ secret: string }>('POST', '/keys', { account: 'small' })
    let refused = ''
    for (let i = 0; i < 3 && refused === ''; i++) {
      const answer = await fetch(`${suite.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'chat-small', messages: [{ role: 'user', content: 'Hi' }] }),
      })
      await answer.arrayBuffer()
      if (answer.status === 429) refused = String(answer.headers.get('x-request-id'))
    }
    const { page, go, close } = await suite.signedIn('admin')
    await go('/calls?account=small&code=rate_limited')
    await page.getByRole('link', { name: refused }).click()
    const limit = sectionOf(page, 'Limit')
    await assertShows(detailOf(limit, 'Limit'), 'requests a minute: 1')
    await assertShows(detailOf(limit, 'Scope'), 'account small')
    await assertShows(detailOf(limit, 'Retry after'), /^\d+ s$/)
    await close()
  })

  it('shows the kept answer of an idempotent call, and a repetition leads to it', async () => {
    const headers = { 'idempotency-key': 'order-1' }
    const first = await suite.called('chat-small', {}, headers)
    const replay = await suite.called('chat-small', {}, headers)
    const { page, go, close } = await suite.signedIn('key')
    await go(`/calls/${replay}`)
    await assertShows(page.getByRole('main'), '409 idempotency_key_replayed')
    await detailOf(sectionOf(page, 'Request'), 'First call with this key').getByRole('link').click()
    await page.waitForURL(`**/calls/${first}`)
    await assertShows(page.getByLabel('The answer as it was sent'), '"object": "chat.completion"')
    await assertShows(detailOf(sectionOf(page, 'Request'), 'Idempotency-Key'), 'order-1')
    await close()
  })

  it('a ticket is filed on it, answered by an operator who sees the call, and the answer is found', async () => {
    const id = await suite.called('demo-failing')
    const caller = await suite.signedIn('key')
    await caller.go(`/calls/${id}`)
    await caller.page.getByRole('button', { name: 'File a ticket' }).click()
    await assertShows(caller.page.getByRole('alert'), 'Say in a few words')
    await caller.page.getByLabel('What went wrong?').fill('It <b>fails</b>.')
    await caller.page.getByRole('button', { name: 'File a ticket' }).click()
    const number = await textOf(caller.page.getByRole('link', { name: /^tkt_/ }))

    const operator = await suite.signedIn('admin')
    await operator.go('/tickets?status=open')
    await assertShows(operator.page.getByRole('row'), 'It <b>fails</b>.')
    await operator.page.getByRole('link', { name: number }).click()
    await assertShows(operator.page.locator('.beside'), '502 upstream_error')
    await operator.page.getByLabel('Reply').fill('The line was broken.')
    await operator.page.getByRole('button', { name: 'Save' }).click()
    await assertShows(detailOf(operator.page.getByRole('main'), 'Status'), 'answered')
    await operator.page.getByLabel('New status').selectOption('closed')
    await operator.page.getByRole('button', { name: 'Save' }).click()
    await assertShows(detailOf(operator.page.getByRole('main'), 'Status'), 'closed')
    await operator.close()

    await caller.go('/tickets')
    await caller.page.getByLabel('Ticket number').fill(number)
    await caller.page.getByRole('button', { name: 'Find' }).click()
    await assertShows(sectionOf(caller.page, 'Reply'), 'The line was broken.')
    await assertShows(detailOf(caller.page.getByRole('main'), 'Status'), 'closed')
    await caller.close()
  })
})

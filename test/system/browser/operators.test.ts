import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertShows, detailOf, sectionOf, textOf, WITHOUT_CHROMIUM } from './browser.ts'
import { consoleSuite } from './console-gateway.ts'

describe('what operators do in the console', { skip: WITHOUT_CHROMIUM }, () => {
  const suite = consoleSuite()
  const asKey = (secret: string): Promise<Response> =>
    fetch(`${suite.url}/v1/models`, { headers: { authorization: `Bearer ${secret}` } })

  it('an account is made, and is given money once for each reference', async () => {
    const { page, go, close } = await suite.signedIn('admin')
    await go('/accounts')
    await assertShows(page.getByRole('row'), /demo.*Demo.*prepaid.*\$25\.00/s)
    await page.getByLabel('Id').fill('acme')
    await page.getByLabel('Name').fill('Acme <Corporation>')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('heading', { name: 'acme', level: 1 }).waitFor()
    await assertShows(detailOf(page, 'Name'), 'Acme <Corporation>')
    for (let i = 0; i < 2; i++) {
      await page.getByLabel('Amount in US dollars').fill('12.50')
      await page.getByLabel('Reference').fill('invoice-1')
      await page.getByRole('button', { name: 'Deposit' }).click()
      await assertShows(sectionOf(page, 'Deposit'), '$12.50 stand in the books as invoice-1')
      await assertShows(detailOf(page, 'Balance'), '$12.50')
    }
    await page.getByLabel('Amount in US dollars').fill('-1')
    await page.getByRole('button', { name: 'Deposit' }).click()
    await assertShows(page.getByRole('alert'), 'amount: must be')
    await close()
  })

  it('a key is made, disabled, enabled, given another secret and deleted; each secret is shown once', async () => {
    const { page, go, close } = await suite.signedIn('admin')
    await go('/keys?account=demo')
    const form = page.getByRole('form', { name: 'A new key' })
    await form.getByLabel('Id').fill('key_new')
    await form.getByLabel('Quota in US dollars').fill('1.50')
    await form.getByLabel('Models').fill('chat-small, claude-*')
    await form.getByRole('button', { name: 'Create' }).click()
    const shown = page.locator('.secret')
    const first = await textOf(shown)
    assert.equal((await asKey(first)).status, 200)
    await assertShows(page.getByRole('row'), /key_new.*enabled.*chat-small, claude-\*.*\$1\.50/s)

    await page.getByRole('link', { name: 'key_new' }).click()
    await page.getByRole('heading', { name: 'key_new' }).waitFor()
    assert.ok(!(await page.content()).includes(first), 'the secret is not shown again')
    await page.getByRole('button', { name: 'Disable' }).click()
    await assertShows(detailOf(page, 'State'), 'disabled')
    assert.equal(await page.evaluate<string>('document.activeElement.textContent'), 'Enable')
    await page.keyboard.press('Enter')
    await assertShows(detailOf(page, 'State'), 'enabled')

    await page.getByLabel('Requests a minute').fill('60')
    await page.getByLabel('Quota in US dollars').fill('')
    await page.getByRole('button', { name: 'Save' }).click()
    await assertShows(detailOf(page, 'Quota'), 'none')
    const kept = await suite.admin<{ limits: object; allow_models: object }>('GET', '/keys/key_new')
    assert.deepEqual(kept.limits, { rpm: 60, tpm: null })
    assert.deepEqual(kept.allow_models, ['chat-small', 'claude-*'])

    await page.getByRole('button', { name: 'Rotate the secret' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    assert.equal(await shown.count(), 0)
    await page.getByRole('button', { name: 'Rotate the secret' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click()
    const second = await textOf(shown)
    assert.notEqual(second, first)
    assert.equal((await asKey(second)).status, 200)

    await page.getByRole('button', { name: 'Delete' }).click()
    await page.keyboard.press('Escape')
    await suite.admin('GET', '/keys/key_new')
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('heading', { name: 'Keys', exact: true }).waitFor()
    await page.locator('[aria-busy=false]').first().waitFor()
    assert.equal(await page.getByRole('link', { name: 'key_new' }).count(), 0)
    await close()
  })

  it('a line shows how it does, and is switched off and on', async () => {
    for (let i = 0; i < 5; i++) await suite.called('demo-failing')
    const { page, go, close } = await suite.signedIn('admin')
    await go('/lines')
    const rowOf = (line: string) =>
      page.getByRole('row').filter({ has: page.locator(`[data-line="${line}"]`) })
    const failing = rowOf('demo-failing-openai').or(rowOf('demo-failing')).first()
    await assertShows(failing, /open, probe in \d+ s/)
    await assertShows(failing, '100 %')
    const us = rowOf('demo-us')
    await us.getByRole('button', { name: 'Switch demo-us off' }).click()
    await assertShows(us, /off.*switched by hand/s)
    assert.equal(await page.evaluate<string>('document.activeElement.textContent'), 'Switch on')
    const id = await suite.called('chat-small')
    await go(`/calls/${id}`)
    await assertShows(page.locator('.eliminated'), /demo-us.*disabled/s)
    await assertShows(page.locator('.attempt'), 'demo-eu')
    await go('/lines')
    await us.getByRole('button', { name: 'Switch demo-us on' }).click()
    await assertShows(us, /●?\s*on/)
    await close()
  })

  it('every change stands in the audit trail, with what it was before and is since', async () => {
    await suite.admin('POST', '/accounts', { id: 'audited', limits: { rpm: 5 } })
    await suite.admin('PATCH', '/accounts/audited', { limits: { rpm: 7 } })
    const { page, go, close } = await suite.signedIn('admin')
    await go('/changes')
    await page.getByLabel('Of').fill('audited')
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.waitForURL('**/console#/changes?subject=audited')
    await assertShows(page.getByRole('row'), /account\.changed.*"rpm":5.*→.*"rpm":7/s)
    await assertShows(page.getByRole('row'), /admin.*account\.created/s)
    await close()
  })

  it('the ledger is checked, and its leases are listed', async () => {
    await suite.called('chat-small')
    const { page, go, close } = await suite.signedIn('admin')
    await go('/ledger')
    await assertShows(detailOf(page, 'The books'), 'are right')
    await assertShows(detailOf(page, 'Charges'), /^\d+$/)
    await page.getByRole('button', { name: 'Check again' }).click()
    await assertShows(detailOf(page, 'The books'), 'are right')
    await close()
  })

  it('a model shows its lines, to operators and to keys', async () => {
    for (const kind of ['admin', 'key'] as const) {
      const { page, go, close } = await suite.signedIn(kind)
      await go('/models')
      await page.getByRole('link', { name: 'chat-failover' }).click()
      const lines = page.getByRole('table', { name: 'Lines of the model' })
      await assertShows(lines.getByRole('row'), /broken-openai.*closed/s)
      assert.equal(
        await lines.getByRole('columnheader', { name: 'Errors' }).count(),
        kind === 'admin' ? 1 : 0,
      )
      await close()
    }
  })
})

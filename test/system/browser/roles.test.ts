import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { untilAsync } from '../../support/until.ts'
import { assertShows, detailOf, dialogOf, openConsole, signIn, textOf, WITHOUT_CHROMIUM } from './browser.ts'
import { consoleSuite } from './console-gateway.ts'

describe('the work of administrators in the console', { skip: WITHOUT_CHROMIUM }, () => {
  const suite = consoleSuite()

  it('an operator is made, whose token is shown once, and deleted', async () => {
    const { page, go, close } = await suite.signedIn('admin')
    await go('/operators')
    const form = await dialogOf(page, 'New operator')
    await form.getByLabel('Name').fill('Ada')
    await form.getByLabel('Role').selectOption('viewer')
    await form.getByRole('button', { name: 'Create' }).click()
    let token = await textOf(page.locator('.secret'))
    const asAda = async (path: string, method = 'GET'): Promise<number> => {
      const headers = { authorization: `Bearer ${token}` }
      return (await fetch(`${suite.url}/admin/${path}`, { method, headers })).status
    }
    assert.equal(await asAda('accounts'), 200)
    assert.equal(await asAda('tickets'), 403)
    assert.equal(await asAda('keys/key_demo', 'DELETE'), 403)
    await assertShows(page.getByRole('row'), /Ada.*viewer/s)

    const change = await dialogOf(page, 'Change Ada')
    assert.equal(await change.getByLabel('Name').inputValue(), 'Ada')
    await change.getByLabel('Role').selectOption('support')
    await change.getByRole('button', { name: 'Save' }).click()
    await assertShows(page.getByRole('row'), /Ada.*support/s)
    assert.equal(await asAda('tickets'), 200)
    assert.equal(await page.locator('.secret').count(), 0, 'the token was shown once')

    const former = token
    const rotation = await dialogOf(page, 'Rotate Ada')
    await rotation.getByRole('button', { name: 'Rotate' }).click()
    await page.locator('.secret').waitFor()
    token = await textOf(page.locator('.secret'))
    assert.notEqual(token, former)
    assert.equal(await asAda('tickets'), 200)
    const deletion = await dialogOf(page, 'Delete Ada')
    await deletion.getByRole('button', { name: 'Delete' }).click()
    await assertShows(page.getByRole('main'), 'Only the admin token is in use.')
    assert.equal(await asAda('accounts'), 401)
    await close()
  })

  it('an operator sees what the role may do, and nothing to do what it may not', async () => {
    const tokenOf = async (role: string): Promise<string> => {
      const made = await suite.admin<{ token: string }>('POST', '/operators', { name: `a ${role}`, role })
      return made.token
    }
    const ways = { money: 'Deposit', limits: 'Settings of the account' }
    for (const [role, shown] of [
      ['viewer', []],
      ['finance', [ways.money]],
      ['admin', [ways.money, ways.limits]],
    ] as const) {
      const tab = await openConsole(suite.browser, suite.url)
      await signIn(tab, await tokenOf(role))
      await tab.page.getByRole('heading', { name: 'Overview' }).waitFor()
      await tab.go('/accounts/demo')
      await assertShows(detailOf(tab.page, 'Deposited'), '$25.00')
      for (const name of Object.values(ways))
        assert.equal(
          await tab.page.getByRole('form', { name }).count(),
          Number(shown.includes(name as never)),
          `${role}: ${name}`,
        )
      await tab.go('/keys/key_demo')
      await assertShows(detailOf(tab.page, 'State'), 'enabled')
      assert.equal(
        await tab.page.getByRole('button', { name: 'Delete' }).count(),
        Number(role === 'admin'),
        role,
      )
      await tab.go('/lines')
      await assertShows(tab.page.getByRole('row'), 'demo-us')
      assert.equal(
        (await tab.page.getByRole('button', { name: /^Switch/ }).count()) > 0,
        role === 'admin',
        role,
      )
      const views = tab.page.getByRole('navigation', { name: 'Views' })
      assert.equal(await views.getByRole('link', { name: 'Operators' }).count(), Number(role === 'admin'))
      await tab.close()
    }
  })

  it('a budget is made, is counted, has its terms changed, and is deleted', async () => {
    const { page, go, close } = await suite.signedIn('admin')
    await go('/budgets?account=demo')
    const form = await dialogOf(page, 'New budget')
    assert.equal(await form.getByLabel('Account').inputValue(), 'demo')
    await form.getByLabel('Tag', { exact: true }).fill('team=search')
    await form.getByLabel('Amount in US dollars').fill('10')
    await form.getByLabel('Period').selectOption('day')
    await form.getByLabel('Time zone').fill('Asia/Tokyo')
    await form.getByLabel('Alert at').fill('0.5 0.8')
    await form.getByRole('button', { name: 'Create' }).click()
    await assertShows(
      page.getByRole('row'),
      /demo, team=search.*day, Asia\/Tokyo.*refuses.*50\s%, 80\s%.*\$10\.00.*\$0\.00/s,
    )
    // A budget reaches the process within 5 s.
    const isCounted = async (): Promise<boolean> => {
      await suite.called('chat-small', {}, { 'x-gateway-tags': 'team=search' })
      const { data } = await suite.admin<{ data: { spent: string }[] }>('GET', '/budgets?account=demo')
      return data[0]?.spent !== '0'
    }
    await untilAsync(isCounted, 'the spending')
    await page.getByRole('link', { name: 'demo, team=search' }).click()
    await assertShows(detailOf(page, 'Spent'), /^\$0\.000\d+$/)
    const change = await dialogOf(page, /^Change/)
    await change.getByLabel('Amount in US dollars').fill('12,5')
    await change.getByRole('button', { name: 'Save' }).click()
    await assertShows(change.getByRole('alert'), 'amount')
    await change.getByLabel('Amount in US dollars').fill('12.5')
    await change.getByLabel('When exhausted').selectOption('allow')
    await change.getByRole('button', { name: 'Save' }).click()
    await assertShows(detailOf(page, 'Amount'), '$12.50')
    await go('/budgets')
    await assertShows(page.getByRole('row'), /demo, team=search.*allows.*\$12\.50/s)
    await page.getByRole('button', { name: /^Delete the budget/ }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await assertShows(page.getByRole('main'), 'No budgets yet.')
    await close()
  })

  it('a webhook is made, whose secret is shown once, and deleted', async () => {
    const { page, go, close } = await suite.signedIn('admin')
    await go('/webhooks')
    const form = await dialogOf(page, 'New webhook')
    await form.getByLabel('URL').fill('https://10.0.0.1/told')
    await form.getByRole('button', { name: 'Create' }).click()
    await assertShows(form.getByRole('alert'), 'url')
    await form.getByLabel('URL').fill('https://hooks.example/told')
    await form.getByRole('checkbox', { name: 'line.down' }).check()
    await form.getByRole('button', { name: 'Create' }).click()
    const secret = await textOf(page.locator('.secret'))
    assert.match(secret, /^whsec_/)
    const rotation = await dialogOf(page, /^Rotate/)
    await rotation.getByRole('button', { name: 'Rotate' }).click()
    await assertShows(page.locator('.secret').filter({ hasNotText: secret }), /^whsec_/)
    await assertShows(page.getByRole('row'), /hooks\.example.*line\.down.*on/s)
    await page.getByRole('link', { name: 'https://hooks.example/told' }).click()
    await assertShows(page.getByRole('main'), 'Nothing was sent to it yet.')
    assert.equal(await page.locator('.secret').count(), 0)
    await page.goBack()
    await page.getByRole('button', { name: 'Delete https://hooks.example/told' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await assertShows(page.getByRole('main'), 'No webhooks yet.')
    await close()
  })
})

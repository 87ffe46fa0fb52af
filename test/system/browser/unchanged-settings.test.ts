import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertShows, WITHOUT_CHROMIUM } from './browser.ts'
import { consoleSuite } from './console-gateway.ts'

/** Settings that no field shows whole. */
const SETTINGS = {
  note: 'two\nlines',
  tags: { 'cost center': 'a, b=c', team: 'data science', word: 'say "hi" \\o/' },
  expires_at: '2099-01-31T10:00:30.500Z',
  allow_models: ['chat-*', 'of us, for you'],
}

describe('the settings of a key in the console', { skip: WITHOUT_CHROMIUM }, () => {
  const suite = consoleSuite()
  const settingsOf = async (id: string) => {
    const { note, tags, expires_at, allow_models } = await suite.admin<typeof SETTINGS>('GET', `/keys/${id}`)
    return { note, tags, expires_at, allow_models }
  }

  it('stay as they are where they were not changed', async () => {
    await suite.admin('POST', '/keys', { id: 'key_kept', account: 'demo', ...SETTINGS })
    const { page, go, close } = await suite.signedIn('admin')
    await go('/keys/key_kept')
    const save = async (label: string, text: string) => {
      await page.getByLabel(label).fill(text)
      const answered = page.waitForResponse((answer) => answer.request().method() === 'PATCH')
      await page.getByRole('button', { name: 'Save' }).click()
      assert.equal((await answered).status(), 200)
    }
    await save('Name', 'Research')
    assert.deepEqual(await settingsOf('key_kept'), SETTINGS)
    const tags = await page.getByLabel('Tags').inputValue()
    await save('Tags', `${tags} env=prod`)
    await close()
    const changed = { ...SETTINGS, tags: { ...SETTINGS.tags, env: 'prod' } }
    assert.deepEqual(await settingsOf('key_kept'), changed)
  })

  it('lead from a tag with spaces to its calls', async () => {
    const { secret } = await suite.admin<{ secret: string }>('POST', '/keys', {
      ...{ account: 'demo', tags: { 'cost center': 'data science' } },
    })
    const id = await suite.called('chat-small', {}, { authorization: `Bearer ${secret}` })
    const { page, go, close } = await suite.signedIn('admin')
    await go(`/reports?group_by=${encodeURIComponent('model,tag:cost center')}`)
    await page.getByRole('link', { name: 'data science' }).click()
    await assertShows(page.getByRole('row').filter({ hasText: 'chat-small' }), id.slice(-4))
    assert.equal(await page.getByLabel('Tags').inputValue(), '"cost center"="data science"')
    await close()
  })
})

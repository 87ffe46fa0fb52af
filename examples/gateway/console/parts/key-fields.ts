import type { Child } from '../element.ts'
import { localTime } from '../format.ts'
import type { Key } from '../keys.ts'
import { facts } from './facts.ts'
import { type Filled, field, namesIn, numberIn, pairsIn, pairsText } from './form.ts'

/** Shows the settings of a key to users who may not change them. */
export function keyFacts({
  name,
  note,
  tags,
  limits,
  allow_models: models,
  allow_ips: ips,
}: Key): HTMLElement {
  return facts([
    ['Name', name],
    ['Note', note],
    ['Tags', pairsText(tags)],
    ['Requests a minute', limits.rpm ?? 'no limit'],
    ['Tokens a minute', limits.tpm ?? 'no limit'],
    ['Models', models?.join(', ') ?? 'all'],
    ['Addresses', ips?.join(', ') ?? 'all'],
  ])
}

/** Creates the fields for the settings of a key, with their current values. */
export function keyFields(key?: Key): Child {
  const number = { inputmode: 'numeric', pattern: '[0-9]*', title: 'A whole number', size: 8 }
  return [
    field({ name: 'name', label: 'Name', attributes: { value: key?.name } }),
    field({ name: 'note', label: 'Note', attributes: { value: key?.note } }),
    field({
      name: 'tags',
      label: 'Tags',
      hint: 'Of all its calls, such as team=search or team="data science".',
      attributes: { value: pairsText(key?.tags), spellcheck: 'false' },
    }),
    field({
      name: 'quota',
      label: 'Quota in US dollars',
      attributes: { value: key?.quota, inputmode: 'decimal', size: 10 },
    }),
    field({
      name: 'expires_at',
      label: 'Expires',
      attributes: { type: 'datetime-local', value: localTime(key?.expires_at) },
    }),
    field({ name: 'rpm', label: 'Requests a minute', attributes: { value: key?.limits.rpm, ...number } }),
    field({ name: 'tpm', label: 'Tokens a minute', attributes: { value: key?.limits.tpm, ...number } }),
    field({
      name: 'allow_models',
      label: 'Models',
      hint: 'Ids. * stands for any text.',
      attributes: { value: key?.allow_models?.join(' ') },
    }),
    field({
      name: 'allow_ips',
      label: 'Addresses',
      hint: 'Addresses or blocks, such as 10.0.0.0/8.',
      attributes: { value: key?.allow_ips?.join(' ') },
    }),
  ]
}

/** Returns the settings of a form as a request body; empty fields remove a restriction. */
export function keySettingsIn(filled: Filled): object {
  const { quota = '', expires_at: expires = '', allow_models: models = '', allow_ips: ips = '' } = filled
  return {
    name: filled.name || null,
    note: filled.note || null,
    tags: pairsIn(filled.tags),
    quota: quota === '' ? null : quota,
    expires_at: expires === '' ? null : new Date(expires).toISOString(),
    allow_models: namesIn(models),
    allow_ips: namesIn(ips),
    limits: { rpm: numberIn(filled.rpm), tpm: numberIn(filled.tpm) },
  }
}

import { describe, expect, test } from 'vitest';
import { brief, collect, inputOf } from './read-text.ts';

const read = (name: string, text: string, changes: Parameters<typeof collect>[1] = {}) =>
  collect([inputOf(name, text)], changes);

describe('row numbers', () => {
  test.each([
    ['x.csv', 'id,annotation\n0,120\n1,121\n2,122\n', {}],
    ['x.csv', '0,120\n1,121\n2,122\n3,123\n', { noHeader: true }],
    ['x.csv', 'id,annotation\n0,120\n1,121\n', {}],
    ['x.txt', '0\n1\n2\n', {}],
    ['x.ndjson', '{"id":0}\n{"id":1}\n{"id":2}\n', {}],
    ['x.json', '[{"id":"0"},{"id":"1"},{"id":"2"}]', {}],
  ])('that stand where ids are expected refuse %s: %j', async (name, text, changes) => {
    await expect(read(name, text, changes)).rejects.toMatchObject({
      code: 'USAGE',
      message: expect.stringContaining('the ids count up from 0'),
      next: expect.stringMatching(/--column.*--allow-placeholders/),
    });
    expect((await read(name, text, { ...changes, allowPlaceholders: true })).length).toBeGreaterThan(1);
  });

  test('are not seen in ids that begin with 1, with one 0, or that go on in another way', async () => {
    for (const text of ['1\n2\n3\n', '0\n', '0\n1\n7\n', '7\n0\n1\n2\n'])
      expect(brief(await read('x.txt', text)).length).toBe(text.split('\n').length - 1);
  });
});

describe('a row about an object, which has an id of its own,', () => {
  test.each([
    ['id,item_type,item_id,whodunnit\n501,View,7,3\n', 'item_id'],
    ['id,objectId,action,objectType\n501,7,x,view\n', 'objectId'],
    ['id,type_objet,id_objet\n501,vue,7\n', 'id_objet'],
    ['id,content_type,object_id\n501,view,7\n', 'object_id'],
    ['id,object_id,title,content_type_id\n501,7,x,12\n', 'object_id'],
    ['id,resource,resourceId\n501,views,7\n', 'resourceId'],
    ['id,model,res_model,res_id\n501,x,view,7\n', 'res_id'],
    ['id,owner_id,owner_resource\n501,7,view\n', 'owner_id'],
    ['id,Resource Type,Resource ID\n501,views,7\n', 'Resource ID'],
    ['id,id_view,name\n501,7,x\n', 'id_view'],
    ['id,idView\n501,7\n', 'idView'],
    ['id,view_key\n501,7\n', 'view_key'],
    ['id,"Views → ID"\n501,7\n', 'Views → ID'],
    ...['id_2', 'id2', 'id.1', 'id:1', 'id_x', 'id (2)'].map((second) => [`id,name,${second}\n501,ann,7\n`, second]),
  ] as [string, string][])('leaves it to a person which id is meant: %j', async (text, rival) => {
    const named = rival.includes(' ') || rival.includes('→') ? `'${rival}'` : rival;
    for (const changes of [{ resource: 'views' }, { resource: null, resourceColumn: text.split(',')[1]! }]) {
      if (changes.resource === null && !/type/i.test(changes.resourceColumn!)) continue;
      await expect(read('x.csv', text, changes)).rejects.toMatchObject({
        code: 'USAGE',
        message: `x.csv:1: both "id" and "${rival}" could hold the ids; nothing was sent`,
        next: expect.stringContaining(`--column ${named.replace(/^id \(2\)$/, "'id (2)'")} or --column id`),
      });
    }
    expect(brief(await read('x.csv', text, { resource: 'views', column: 'id' }))).toEqual(['501']);
    expect(brief(await read('x.csv', text, { resource: 'views', column: rival }))).toEqual(['7']);
  });

  test('is also seen in the fields of JSON, and in the second of two kinds of records', async () => {
    const text = '{"id":"1","name":"x"}\n{"id":"501","object_type":"view","object_id":"7"}\n';
    await expect(read('x.ndjson', text, { resource: 'views' })).rejects.toThrow(
      'x.ndjson:2: both "id" and "object_id"',
    );
  });

  test.each([
    'id,type,title\nv1,chart,x\n',
    'id,owner_id,created_type\nv1,7,x\n',
    'id,identity,idea,paid,video_id\nv1,7,x,y,z\n',
    'id,owner_type\nv1,User\n',
    'id,content_type,parent_id\nv1,image/png,7\n',
    'id,object_id,object_name\nv1,7,x\n',
    'id,type,type_id\nv1,x,7\n',
    'id,class,class_id,modelId,modelName\nv1,x,7,8,y\n',
  ])('is not seen in other columns: %j', async (text) => {
    expect(brief(await read('x.csv', text, { resource: 'views' }))).toEqual(['v1']);
  });
});

describe('an object around the ids', () => {
  test.each([
    ['x.ndjson', '{"id":77,"data":[{"id":1201}]}\n', 'data'],
    ['x.ndjson', '{"id":"5","annotation":{"id":"1201"}}\n', 'annotation'],
    ['x.json', '[{"id":77,"items":[{"id":1201},{"id":1202}]}]', 'items'],
    ['x.ndjson', '{"id":501,"target":{"type":"annotation","id":1201}}\n', 'target'],
    ['x.ndjson', '{"id":501,"subject":{"id":1201,"kind":"Annotation"}}\n', 'subject'],
    ['x.ndjson', '{"id":"501","object":{"id":1201,"object":"annotation"}}\n', 'object'],
    ['x.ndjson', '{"id":"501","node":{"__typename":"Annotation","id":1201}}\n', 'node'],
    ['x.ndjson', '{"id":"e1","object":"event","data":{"object":{"id":1201,"object":"annotation"}}}\n', 'data.object'],
    ['x.ndjson', '{"id":"501","payload":{"user":{"id":3},"annotation":{"id":1201}}}\n', 'payload.annotation'],
  ])('refuses %s: %j', async (name, text, field) => {
    await expect(read(name, text)).rejects.toMatchObject({
      message: expect.stringContaining(`:1: both "id" and "${field}.id" could hold the ids`),
      next: `name the right one: --column ${field}.id or --column id`,
    });
    expect(await read(name, text, { column: 'id' })).toHaveLength(1);
    const within = brief(await read(name, text, { column: `${field}.id` }));
    expect(['1201', '1202'].slice(0, within.length)).toEqual(within);
  });

  test('is not seen in an object that names others', async () => {
    const texts = [
      '{"id":"a1","author":{"id":5,"type":"User"},"tags":[{"id":1}],"view":{"id":"v1"},"data":{"x":1}}',
      '{"id":"a2","data":[]}',
      '{"id":"a3","team":{"data":{"type":"team","id":7}},"view":{"items":[{"id":8}]}}',
      '{"id":"a4","type":"annotations","relationships":{"parent":{"data":{"type":"annotations","id":"a1"}}}}',
    ];
    expect(brief(await read('x.ndjson', `${texts.join('\n')}\n`))).toEqual(['a1', 'a2', 'a3', 'a4']);
  });
});

test.each([
  ['x.txt', '1201,1202\n', '1201,1202'],
  ['x.txt', '1201|x\n', '1201|x'],
  ['x.csv', 'id\n"1201,1202"\n', '1201,1202'],
  ['x.csv', 'id\n120*\n', '120*'],
  ['x.txt', '120*\n', '120*'],
  ['x.ndjson', '{"id":"1201,1202"}\n', '1201,1202'],
  ['x.json', '["1201,1202"]', '1201,1202'],
])(
  'an id that may be several is rejected, unless ids may hold a comma or a bar: %s with %j',
  async (name, text, id) => {
    expect(brief(await read(name, text))).toEqual([`${id} several_values`]);
    expect(brief(await read(name, text, { allowIdChars: ',|*' }))).toEqual([id]);
  },
);

test('a bar in a cell is kept: the exporter did not take it for a separator', async () => {
  expect(brief(await read('x.csv', 'id\nauth0|7\n'))).toEqual(['auth0|7']);
});

test('whole numbers are ids, one per line or in an array, as jq writes them', async () => {
  expect(brief(await read('x.ndjson', '1201\n1202\n1e3\n'))).toEqual(['1201', '1202', '1e3 unsafe_number']);
  expect(brief(await read('x.json', '[1201, 1202,\n9007199254740993]'))).toEqual(['1201', '1202', '9007199254740993']);
});

describe('a column that names both kinds', () => {
  test.each([
    ['x.csv', 'type,id\nannotation,1201\nview,7\n', 'type'],
    ['x.csv', 'object_type,id\nView,7\nAnnotation,1201\n', 'object_type'],
    ['x.ndjson', '{"kind":"annotations","id":1201}\n{"kind":"views","id":7}\n', 'kind'],
  ])('refuses %s for --resource annotations: %j', async (name, text, column) => {
    await expect(read(name, text)).rejects.toMatchObject({
      message: expect.stringMatching(new RegExp(`the column "${column}" says .*, and another kind above`)),
      next: expect.stringContaining(`--resource-column ${column}`),
    });
  });

  test('is told from one that says what the objects belong to', async () => {
    expect(brief(await read('x.csv', 'type,id\nview,1201\nview,1202\n'))).toEqual(['1201', '1202']);
    expect(brief(await read('x.csv', 'type,id\nalert,1201\nview,1202\n'))).toEqual(['1201', '1202']);
  });
});

test('a resource that is nearly the right word is rejected with the right one', async () => {
  const text = 'resource,id\nAnnotations,a1\nview,a2\nannotations ,a3\nusers,a4\nviews,a5\n';
  const rows = await read('x.csv', text, { resource: null, resourceColumn: 'resource' });
  expect(rows.map(({ reject }) => reject)).toEqual([
    'misspelt_resource',
    'misspelt_resource',
    'misspelt_resource',
    'unknown_resource',
    null,
  ]);
});

test.each(['utf16le', 'utf-16be'])(
  'text in %s without a byte order mark is named, with its command',
  async (encoding) => {
    const bytes = Buffer.from('id\r\n1201\r\n', 'utf16le');
    const file = inputOf('x.csv', encoding === 'utf16le' ? bytes : bytes.swap16());
    await expect(collect([file])).rejects.toMatchObject({
      message: expect.stringMatching(/x\.csv: expected UTF-8, got UTF-16[LB]E/),
      next: expect.stringMatching(/iconv -f UTF-16[LB]E -t UTF-8/),
    });
  },
);

test('objects over several lines are refused with the command that puts each on one, by either format', async () => {
  const text = '{\n  "id": "a1"\n}\n{\n  "id": "a2"\n}\n';
  for (const name of ['x.ndjson', 'x.json'])
    await expect(read(name, text)).rejects.toMatchObject({
      next: expect.stringContaining(`jq -c . ${name} > x.lines.ndjson`),
    });
});

test.each([
  '  id  \n------\n 1201\n(1 row)\n',
  '+------+\n| id   |\n+------+\n| 1201 |\n',
  '     id\n0  1201\n',
  'id | name\n--- | ---\n1201 | x\n',
])('a printed table is refused as one: %j', async (text) => {
  await expect(read('x.txt', text)).rejects.toMatchObject({
    message: expect.stringContaining('the row holds "id'),
    next: expect.stringContaining('psql -At'),
  });
});

test('plain lines with the header of a CSV are still sent to --format csv', async () => {
  await expect(read('x.txt', 'id,name\n1201,x\n')).rejects.toMatchObject({
    next: expect.stringContaining('--format csv --column id'),
  });
});

test.each(['#TYPE System.Object\r\n"id"\r\n"1201"\r\n', 'sep=;\r\nid;name\r\n1201;x\r\n'])(
  'a line above the header is named as what it is: %j',
  async (text) => {
    await expect(read('x.csv', text)).rejects.toMatchObject({ next: expect.stringContaining('tail -n +2') });
  },
);

test('a column of views is not read as annotations, unless that is meant', async () => {
  const text = 'view_id\n1201\n';
  await expect(read('x.csv', text, { column: 'view_id' })).rejects.toMatchObject({
    message: expect.stringContaining('--column view_id names ids of views, and --resource is annotations'),
    next: expect.stringMatching(/--resource views.*--allow-column-names/),
  });
  expect(brief(await read('x.csv', text, { column: 'view_id', resource: 'views' }))).toEqual(['1201']);
  expect(brief(await read('x.csv', text, { column: 'view_id', allowColumnNames: true }))).toEqual(['1201']);
});

test('rows of empty cells, as spreadsheets leave them, are blank lines; a row with any text is not', async () => {
  expect(brief(await read('x.csv', ',\r\nid,name\r\na1,x\r\n,\r\n,y\r\n,\r\n'))).toEqual(['a1', 'empty_id']);
  expect(brief(await read('x.csv', 'id\n""\na1\n'))).toEqual(['empty_id', 'a1']);
});

test.each(['x.txt', 'x.csv'])('a merge conflict refuses %s: ids of both versions are in it', async (name) => {
  const text = 'id\n1201\n<<<<<<< HEAD\n1202\n=======\n1203\n>>>>>>> other\n';
  await expect(read(name, name === 'x.csv' ? text : text.slice(3))).rejects.toThrow('the row marks a merge conflict');
});

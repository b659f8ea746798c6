package weaviate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	pb "github.com/weaviate/weaviate/grpc/generated/protocol/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/google/uuid"

	"ibid/retrieve"
)

// A batch holds at most so many objects, and about so many bytes.
const (
	batchObjects = 256
	batchBytes   = 4 << 20
)

// maxResults is the most that one search of Weaviate gives
// (QUERY_MAXIMUM_RESULTS is 10,000 where nobody changed it).
const maxResults = 10_000

// space of the ids: objects have UUIDs of version 5 of what Ibid calls them.
var names = uuid.MustParse("6f2d3f0e-6f0b-5c55-9a39-1a2b6c8f7d10")

// idOf is the id of the object of that kind and those names.
func idOf(kind string, of ...string) string {
	return uuid.NewSHA1(names, []byte(kind+"\x00"+strings.Join(of, "\x00"))).String()
}

// isText refuses what Weaviate cannot give back as it was: it holds text alone.
func isText(of ...string) error {
	for _, s := range of {
		if !utf8.ValidString(s) {
			return fmt.Errorf("%.60q is not in UTF-8, and Weaviate keeps nothing else: rename the folder, or use another store", s)
		}
	}
	return nil
}

// object makes one to be stored. Values are strings, ints, bools and lists of
// strings.
func object(class, id string, values map[string]any) *pb.BatchObject {
	p := &pb.BatchObject_Properties{NonRefProperties: &structpb.Struct{Fields: make(map[string]*structpb.Value, len(values))}}
	for name, value := range values {
		switch v := value.(type) {
		case string:
			p.NonRefProperties.Fields[name] = structpb.NewStringValue(strings.ToValidUTF8(v, "\uFFFD"))
		case bool:
			p.NonRefProperties.Fields[name] = structpb.NewBoolValue(v)
		case int:
			p.NonRefProperties.Fields[name] = structpb.NewNumberValue(float64(v))
		case int64:
			p.NonRefProperties.Fields[name] = structpb.NewNumberValue(float64(v))
		case []string:
			if len(v) > 0 {
				p.TextArrayProperties = append(p.TextArrayProperties, &pb.TextArrayProperties{PropName: name, Values: v})
			}
		}
	}
	return &pb.BatchObject{Uuid: id, Collection: class, Properties: p}
}

// A row is an object that was found.
type row struct {
	id     string
	values map[string]*pb.Value
	vector []float32
}

func (r row) text(name string) string {
	v := r.values[name]
	if s := v.GetTextValue(); s != "" {
		return s
	}
	return v.GetUuidValue()
}

func (r row) int(name string) int { return int(r.values[name].GetIntValue()) }

// Consistency: a write is acknowledged by every replica, so that any one of
// them can be read. With a replica away its shards take no writes until it is
// back, and nothing acknowledged is ever missing in what is read.
const (
	writing = pb.ConsistencyLevel_CONSISTENCY_LEVEL_ALL
	reading = pb.ConsistencyLevel_CONSISTENCY_LEVEL_ONE
)

// query is what all searches have in common.
func query(class string, where *pb.Filters, limit int, properties ...string) *pb.SearchRequest {
	return &pb.SearchRequest{
		Collection: class, ConsistencyLevel: reading.Enum(), Filters: where, Limit: uint32(limit),
		Properties: &pb.PropertiesRequest{NonRefProperties: properties}, Metadata: &pb.MetadataRequest{Uuid: true},
		Uses_127Api: true,
	}
}

func (w *wire) search(ctx context.Context, q *pb.SearchRequest) ([]row, error) {
	var reply *pb.SearchReply
	err := w.try(ctx, func(ctx context.Context) (err error) {
		reply, err = w.rpc.Search(ctx, q)
		return err
	})
	if err != nil {
		return nil, err
	}
	rows := make([]row, len(reply.Results))
	for i, r := range reply.Results {
		m := r.GetMetadata()
		rows[i] = row{id: m.GetId(), values: r.GetProperties().GetNonRefProps().GetFields()}
		if len(m.GetVectorBytes()) > 0 {
			rows[i].vector = retrieve.UnpackVector(m.GetVectorBytes())
		} else if len(m.GetVectors()) > 0 {
			rows[i].vector = retrieve.UnpackVector(m.GetVectors()[0].GetVectorBytes())
		}
	}
	return rows, nil
}

// each gives every object of a class, by its id in Weaviate, in pages.
func (w *wire) each(ctx context.Context, class string, page int, f func(row) error, properties ...string) error {
	for after := ""; ; {
		q := query(class, nil, page, properties...)
		if after != "" {
			q.After = after
		}
		rows, err := w.search(ctx, q)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if err := f(r); err != nil {
				return err
			}
		}
		if len(rows) < page {
			return nil
		}
		after = rows[len(rows)-1].id
	}
}

// put stores objects, in place of those that have their ids. Where it fails
// some of them may be stored.
func (w *wire) put(ctx context.Context, objects ...*pb.BatchObject) error {
	for len(objects) > 0 {
		n, size := 0, 0
		for n < len(objects) && n < batchObjects && (n == 0 || size < batchBytes) {
			size += proto.Size(objects[n])
			n++
		}
		if err := w.putBatch(ctx, objects[:n]); err != nil {
			return err
		}
		objects = objects[n:]
	}
	return nil
}

func (w *wire) putBatch(ctx context.Context, left []*pb.BatchObject) error {
	return w.try(ctx, func(ctx context.Context) error {
		reply, err := w.rpc.BatchObjects(ctx, &pb.BatchObjectsRequest{Objects: left, ConsistencyLevel: writing.Enum()})
		if err != nil || len(reply.Errors) == 0 {
			return err
		}
		// Those that failed are sent again, unless one can never succeed.
		var again []*pb.BatchObject
		for _, e := range reply.Errors {
			if int(e.Index) >= len(left) {
				return fmt.Errorf("an object that was not sent failed: %s", e.Error)
			}
			again = append(again, left[e.Index])
			if err = errors.New(e.Error); !passes(e.Error) {
				return err
			}
		}
		left = again
		return err
	})
}

// remove deletes the objects of a class that a filter lets through.
func (w *wire) remove(ctx context.Context, class string, where *pb.Filters) error {
	for {
		var reply *pb.BatchDeleteReply
		err := w.try(ctx, func(ctx context.Context) (err error) {
			reply, err = w.rpc.BatchDelete(ctx, &pb.BatchDeleteRequest{Collection: class, Filters: where, ConsistencyLevel: writing.Enum(), Verbose: true})
			if err == nil && reply.Failed > 0 {
				err = fmt.Errorf("%d of %d objects were not deleted by every replica", reply.Failed, reply.Matches)
				for _, o := range reply.Objects {
					if o.GetError() != "" {
						return fmt.Errorf("%w: %s", err, o.GetError())
					}
				}
			}
			return err
		})
		// As many as a search gives at most are deleted at a time.
		if err != nil || reply.Matches < maxResults/10 {
			return err
		}
	}
}

func on(property string) *pb.FilterTarget {
	return &pb.FilterTarget{Target: &pb.FilterTarget_Property{Property: property}}
}

func equal(property, value string) *pb.Filters {
	return &pb.Filters{Operator: pb.Filters_OPERATOR_EQUAL, Target: on(property), TestValue: &pb.Filters_ValueText{ValueText: value}}
}

func anyOf(property string, values []string) *pb.Filters {
	return &pb.Filters{Operator: pb.Filters_OPERATOR_CONTAINS_ANY, Target: on(property), TestValue: &pb.Filters_ValueTextArray{ValueTextArray: &pb.TextArray{Values: values}}}
}

func like(property, pattern string) *pb.Filters {
	return &pb.Filters{Operator: pb.Filters_OPERATOR_LIKE, Target: on(property), TestValue: &pb.Filters_ValueText{ValueText: pattern}}
}

func number(operator pb.Filters_Operator, property string, value int) *pb.Filters {
	return &pb.Filters{Operator: operator, Target: on(property), TestValue: &pb.Filters_ValueInt{ValueInt: int64(value)}}
}

func always(property string) *pb.Filters {
	return &pb.Filters{Operator: pb.Filters_OPERATOR_EQUAL, Target: on(property), TestValue: &pb.Filters_ValueBoolean{ValueBoolean: true}}
}

// all joins filters; those that are nil let everything through.
func all(of ...*pb.Filters) *pb.Filters {
	of = slices.DeleteFunc(of, func(f *pb.Filters) bool { return f == nil })
	switch len(of) {
	case 0:
		return nil
	case 1:
		return of[0]
	}
	return &pb.Filters{Operator: pb.Filters_OPERATOR_AND, Filters: of}
}

// byID selects objects by their ids in Weaviate.
func byID(ids ...string) *pb.Filters {
	if len(ids) == 1 {
		return equal("_id", ids[0])
	}
	return anyOf("_id", ids)
}
